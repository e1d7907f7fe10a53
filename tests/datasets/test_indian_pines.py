"""Indian Pines offline: the published counts, the published band list, no import of tensorly."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import hsreject as hr
from hsreject import schema
from hsreject.datasets import indian_pines
from hsreject.errors import FileError

# the published number of labelled pixels, classes 1 to 16
COUNTS = (46, 1428, 830, 237, 483, 730, 28, 478, 20, 972, 2455, 593, 205, 1265, 386, 93)


@pytest.fixture(scope="module")
def scene():
    return hr.load_indian_pines()


def test_size_type_and_order(scene) -> None:
    cube, labels = scene
    assert (cube.dims, cube.shape) == (schema.CUBE_DIMS, (200, 145, 145))
    assert (cube.dtype, labels.dtype) == (np.uint16, np.uint8)
    assert cube.values.flags.c_contiguous
    assert labels.dims == schema.MAP_DIMS


def test_every_class_has_its_published_count(scene) -> None:
    _, labels = scene
    assert tuple(np.bincount(labels.values.ravel())[1:]) == COUNTS
    table = schema.class_table(labels)
    assert table.values == tuple(range(1, 17))
    assert table.name_of(9) == "Oats"
    assert table.name_of(16) == "Stone-Steel-Towers"


def test_labels_lie_on_the_fields_of_the_cube(scene) -> None:
    # In the near infrared, vegetation in the woods is far brighter than in the red; steel and stone
    # is not. A transposed cube or label map would mix the two.
    cube, labels = scene
    by_wavelength = cube.swap_dims(band="wavelength").sortby("wavelength")
    ratio = by_wavelength.sel(wavelength=860, method="nearest") / by_wavelength.sel(
        wavelength=670, method="nearest"
    )
    medians = {k: float(np.median(ratio.values[labels.values == k])) for k in (14, 16)}
    assert medians[14] > 1.5 > medians[16] > 0.8
    mixed = float(np.median(ratio.values[labels.values.T == 14]))
    assert mixed < medians[14]


def test_wavelengths_come_from_the_official_band_list(scene) -> None:
    cube, _ = scene
    number = cube.band_number.values
    assert set(range(1, 221)) - set(number) == {*range(104, 109), *range(150, 164), 220}
    assert cube.band.values.tolist() == list(range(1, 201))
    at = dict(zip(number, cube.wavelength.values, strict=True))
    # read off 92AV3C.spc by eye: first, both sides of each spectrometer overlap, last kept
    expected = {1: 400.02, 31: 696.5, 32: 686.91, 94: 1282.55, 95: 1273.0, 219: 2489.11}
    for band, wavelength in expected.items():
        assert at[band] == pytest.approx(wavelength, abs=0.005)
    assert at[103] < 1370 < at[109]  # the water band near 1.4 um is what was dropped
    assert cube.wavelength.attrs["units"] == "nm"
    assert cube.fwhm.values.min() > 8
    assert cube.fwhm.values.max() < 17


def test_loading_does_not_import_tensorly() -> None:
    code = (
        "import sys, hsreject as hr; hr.load_indian_pines();"
        "print('tensorly' in sys.modules, 'matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
    assert done.stderr == ""


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indian_pines, "find_spec", lambda name: None)
    with pytest.raises(FileError, match="pip install --upgrade tensorly"):
        hr.load_indian_pines()


def test_a_damaged_file_is_refused(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(indian_pines, "find_spec", lambda name: package)
    with pytest.raises(FileError, match="Indian_pines_corrected"):
        hr.load_indian_pines()
    folder = tmp_path / "datasets" / "data"
    folder.mkdir(parents=True)
    np.save(folder / "Indian_pines_corrected.npy", np.zeros((2, 2)))
    with pytest.raises(FileError, match=r"shape \(145, 145, 200\) \(got \(2, 2\)\)"):
        hr.load_indian_pines()
