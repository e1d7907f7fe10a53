import numpy as np
import pytest
import xarray as xr

from hsreject import synthetic_scene
from hsreject.errors import InputError
from hsreject.schema import class_table, valid_pixels


def test_the_same_seed_gives_the_same_scene() -> None:
    first, second, other = (synthetic_scene(seed=seed)[0] for seed in (3, 3, 4))
    xr.testing.assert_identical(first, second)
    assert not np.array_equal(first.values, other.values, equal_nan=True)


def test_every_class_is_there_and_named() -> None:
    cube, labels = synthetic_scene(n_classes=4)
    assert set(np.unique(labels.values)) == {0, 1, 2, 3, 4}
    assert class_table(labels).names[0] == "cover 1"
    assert cube.rio.transform() == labels.rio.transform()


def test_the_hole_has_no_data_in_any_band() -> None:
    cube, _ = synthetic_scene()
    missing = np.isnan(cube.values)
    assert missing.any()
    assert np.array_equal(missing.any(axis=0), missing.all(axis=0))
    assert valid_pixels(synthetic_scene(hole=False)[0]).all()


def test_noise_makes_classes_overlap() -> None:
    clean, labels = synthetic_scene(noise=0.0, hole=False)
    noisy, _ = synthetic_scene(noise=1.0, hole=False)
    inside = labels.values == 1
    assert clean.values[:, inside].std(axis=1).mean() < noisy.values[:, inside].std(axis=1).mean()


def test_impossible_scenes_are_refused() -> None:
    with pytest.raises(InputError, match="rows must be a whole number, at least 16"):
        synthetic_scene(rows=4)
