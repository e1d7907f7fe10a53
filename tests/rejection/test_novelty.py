import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject import schema
from hsreject.errors import InputError
from hsreject.rejection.novelty import conformal_p_value


@pytest.fixture
def features() -> xr.DataArray:
    values = np.random.default_rng(0).normal(size=(4, 12, 13)).astype(np.float32)
    values[:, 2, 3] = np.nan
    values[:, 7:9, 7:9] += 12  # like nothing else
    coords = {"y": np.arange(12.0), "x": np.arange(13.0)}
    return xr.DataArray(values, dims=schema.CUBE_DIMS, coords=coords)


@pytest.fixture
def training(features) -> xr.DataArray:
    labels = xr.zeros_like(features.isel(band=0, drop=True), dtype=np.uint8)
    labels[:6, 10] = 1
    labels[6:, 0] = 2
    return labels


def test_p_value_by_counting(features, training) -> None:
    p_value = hr.Novelty().fit(features, training).p_value(features)
    plain = features.values.astype(np.float64)
    samples = plain[:, training.values > 0].T
    apart = np.linalg.norm(samples[:, None] - samples, axis=2) + np.diag(np.full(len(samples), 1e9))
    left_out = apart.min(axis=1)
    for y, x in np.argwhere(~np.isnan(plain[0])):
        distance = np.linalg.norm(samples - plain[:, y, x], axis=1).min()
        steps = (1 + (left_out >= distance).sum()) / (len(samples) + 1)
        nearer = left_out[left_out < distance].max(initial=0)
        above = (1 + (left_out >= nearer).sum()) / (len(samples) + 1)
        # Interpolation stays within one step, on the safe side; float32 holds seven digits.
        assert steps - 1e-6 <= p_value.values[y, x] <= above + 1e-6


def test_far_pixels_are_novel_and_nodata_is_nodata(features, training) -> None:
    p_value = hr.Novelty().fit(features, training).p_value(features)
    assert p_value.name == "novelty_p_value"
    assert p_value.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(p_value), np.isnan(features[0]))
    novel = np.zeros(p_value.shape, dtype=bool)
    novel[7:9, 7:9] = True
    known = ~novel & ~np.isnan(p_value.values)
    assert p_value.values[novel].max() < p_value.values[known].min()
    xr.testing.assert_equal(p_value.y, features.y)


def test_chunks_and_bad_bands_change_nothing(features, training) -> None:
    novelty = hr.Novelty().fit(features, training)
    expected = novelty.p_value(features)
    lazy = novelty.p_value(features.chunk({"y": 5, "x": 4}))
    assert lazy.chunks is not None
    xr.testing.assert_identical(lazy.compute(), expected)
    wider = xr.concat([features, features[:1] * 100], "band")
    wider = wider.assign_coords(good_band=("band", [True, True, True, True, False]))
    wide = hr.Novelty().fit(wider, training).p_value(wider)
    np.testing.assert_array_equal(wide.values, expected.values)


@pytest.mark.parametrize("n_neighbors", [1, 3])
def test_known_samples_are_rarely_called_novel(n_neighbors) -> None:
    """P(p <= level) <= level, over draws of training and test samples of one distribution."""
    rng = np.random.default_rng(1)
    levels = np.array([0.02, 0.05, 0.1, 0.2, 0.5])
    hits, n_draws = np.zeros(levels.size), 200
    for _ in range(n_draws):
        samples = rng.standard_t(df=3, size=(100, 3))  # heavy tails
        novelty = hr.Novelty(n_neighbors=n_neighbors).fit_samples(samples[:60])
        hits += (novelty.sample_p_value(samples[60:])[:, None] <= levels).mean(axis=0)
    spread = np.sqrt(levels * (1 - levels) / n_draws)  # the training draws are what varies
    assert (hits / n_draws <= levels + 3 * spread).all()
    assert (hits / n_draws)[2:] == pytest.approx(levels[2:], rel=0.3)  # and not much too careful


def test_p_value_falls_strictly_beyond_what_was_seen() -> None:
    distance = np.linspace(0.5, 50, 200)
    p_value = conformal_p_value(distance, np.array([1.0, 2.0, 3.0]))
    assert (np.diff(p_value[distance >= 1]) < 0).all()
    assert p_value.min() > 1 / 4
    assert conformal_p_value(np.array([0.0, 1.0]), np.zeros(3)).tolist() == [1.0, 0.25]


def test_what_cannot_work_is_refused(features, training) -> None:
    samples = np.random.default_rng(2).normal(size=(20, 3))
    holed = samples.copy()
    holed[:, 1] = np.nan
    fitted = hr.Novelty().fit_samples(samples)
    for message, call in {
        "12 and 12 samples": lambda: hr.Novelty(n_neighbors=12).fit(features, training),
        "on 4 features but is given 3": lambda: (
            hr.Novelty().fit(features, training).p_value(features[:3])
        ),
        "training labels has 11 rows": lambda: hr.Novelty().fit(features, training[:11]),
        "20 NaN or infinite of 60 values, in 1 of 3": lambda: hr.Novelty().fit_samples(holed),
        r"shape \(20,\)": lambda: hr.Novelty().fit_samples(samples[:, 0]),
        r"shape \(3,\)": lambda: fitted.sample_p_value(samples[0]),
        "on 3 features but is given 2": lambda: fitted.sample_p_value(samples[:, :2]),
        "1.5": lambda: hr.Novelty(n_neighbors=1.5).fit_samples(samples),
        "got 0": lambda: hr.Novelty(n_neighbors=0).fit_samples(samples),
    }.items():
        with pytest.raises(InputError, match=message):
            call()
