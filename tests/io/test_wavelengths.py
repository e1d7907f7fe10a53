"""Wavelengths, widths and flags come out right, however a file says them."""

from pathlib import Path

import numpy as np
import pytest
import rasterio

import hsreject as hr
from hsreject import schema
from tests.io.writers import envi_scene, guesses, random_cube, write_with_gdal

NM = np.array([450.5, 550.0, 650.25])


@pytest.mark.parametrize(
    ("values", "units", "told"),
    [
        ("450.5, 550, 650.25", "nm", ""),
        ("450.5, 550, 650.25", "Unknown", "were read as nm"),
        ("450.5, 550, 650.25", "Micrometers", "were read as nm"),
        ("0.4505, 0.55, 0.65025", "um", ""),
        ("0.4505, 0.55, 0.65025", "microns", ""),
        ("0.4505, 0.55, 0.65025", None, "were read as um"),
        ("0.4505, 0.55, 0.65025", "Nanometers", "were read as um"),
    ],
)
def test_wavelength_units(tmp_path: Path, values, units, told) -> None:
    cube = envi_scene(tmp_path, wavelength=f"{{{values}}}", wavelength_units=units)
    np.testing.assert_allclose(cube.wavelength, NM, rtol=1e-12)  # one division or product
    assert cube.wavelength.attrs["units"] == "nm"
    assert told in guesses(cube)
    assert told or "read as" not in guesses(cube)


WITHOUT = (
    {},
    {"wavelength": "{1, 2, 3}", "wavelength_units": "Index"},
    {"wavelength": "{0, 0, 0}"},
    {"wavelength": "{}"},
    {"band_names": "{Band 1, Band 2, Band 3}"},
    {"band_names": "{1, 2, 3}"},
    {"band_names": "{PC 1, PC 2, PC 3}"},
    {"band_names": "{201, 202, 203}"},
    {"band_names": "{450 nm, Band 2, 650 nm}"},
    {"band_names": "{v1.0, v1.1, v1.2}"},
)


def test_no_wavelengths_where_there_are_none(tmp_path: Path) -> None:
    for fields in WITHOUT:
        assert schema.WAVELENGTH not in envi_scene(tmp_path, **fields).coords, fields


def test_wavelengths_of_zero_are_unknown(tmp_path: Path) -> None:
    cube = envi_scene(tmp_path, wavelength="{0, 0.5, 0.6}")
    np.testing.assert_array_equal(cube.wavelength, [np.nan, 500, 600])
    assert "1 of 3 bands have the wavelength 0" in guesses(cube)


NAMES = (
    "450.5 Nanometers, 550.0 Nanometers, 650.25 Nanometers",
    "Resize (Band 1:clip_2013) (450.500000), Resize (Band 2:clip_2013) (550.0), R (650.25)",
    "Band 1 (450.5 nm), Band 2 (550 nm), Band 3 (650.25 nm)",
    "Band 1 (0.4505 um), Band 2 (0.55 um), Band 3 (0.65025 um)",
    "B01_450.5nm, B02_550nm, B03_650.25nm",
    "450.5, 550, 650.25",
    "0.4505, 0.55, 0.65025",
    "Reflectance 450.5, Reflectance 550.0, Reflectance 650.25",
    "Band 1 [450.5], Band 2 [550.0], Band 3 [650.25]",
    "Resize (Band 1 (450.5):a.img), Resize (Band 2 (550.0):a.img), Resize (Band 3 (650.25):b)",
)


def test_numbers_inside_band_names(tmp_path: Path) -> None:
    for names in NAMES:
        cube = envi_scene(tmp_path, band_names=f"{{{names}}}")
        np.testing.assert_allclose(cube.wavelength, NM, rtol=1e-12, err_msg=names)
        assert "numbers inside the band names" in guesses(cube)


def test_the_stated_unit_holds_for_numbers_in_the_names(tmp_path: Path) -> None:
    names = "{450.5, 550, 650.25}"
    cube = envi_scene(tmp_path, band_names=names, wavelength_units="Wavenumber")
    assert "'Wavenumber' are neither nm nor um" in guesses(cube)
    assert "wavelength" not in cube.coords
    cube = envi_scene(tmp_path, band_names=names, wavelength_units="Nanometers")
    np.testing.assert_array_equal(cube.wavelength, NM)
    assert "No units given" not in guesses(cube)
    cube = envi_scene(tmp_path, wavelength=names, band_names="{1 nm, 2 nm, 3 nm}")
    np.testing.assert_array_equal(cube.wavelength, NM)  # the field counts before the names


LISTS = {
    "wavelength": "{0.4505, 0.55, 0.65025}",
    "wavelength_units": "Micrometers",
    "fwhm": "{0.01, 0.0125, 0.02}",
    "bbl": "{1, 0, 1.0}",
}


def check_lists(cube) -> None:
    np.testing.assert_allclose(cube.wavelength, NM, rtol=1e-12)
    np.testing.assert_allclose(cube.fwhm, [10, 12.5, 20], rtol=1e-12)
    np.testing.assert_array_equal(cube.good_band, [True, False, True])


def test_widths_and_flags(tmp_path: Path) -> None:
    check_lists(envi_scene(tmp_path, **LISTS))
    for domain in ("", "ENVI"):  # in the tags of another format
        check_lists(hr.open_scene(tagged(tmp_path / "scene.tif", [], **{domain: LISTS})))


def tagged(path: Path, per_band: list[dict[str, str]], *, ns: str | None = None, **whole) -> Path:
    write_with_gdal(path, random_cube(shape=(3, 4, 5)))
    with rasterio.open(path, "r+") as dataset:
        for band, tags in enumerate(per_band, start=1):
            dataset.update_tags(band, ns=ns, **tags)
        for domain, tags in whole.items():
            dataset.update_tags(ns=domain or None, **tags)
    return path


@pytest.mark.parametrize(
    ("names", "factor", "units"),
    [
        (("wavelength", "fwhm"), 1, {"wavelength_units": "Nanometers"}),
        (("wavelength", "fwhm"), 1e-3, {"wavelength_units": "Micrometers"}),
        (("wavelength", "fwhm"), 1e-3, {}),
        (("WAVELENGTH", "FWHM"), 1, {"WAVELENGTH_UNITS": "nm"}),
        (("wavelengthCenterOfBand", "FWHMOfBand"), 1, {}),
        (("Center Wavelength", "Bandwidth"), 1, {}),
        (("CENTRAL_WAVELENGTH_NM", "FWHM_NM"), 1, {}),
        (("CENTRAL_WAVELENGTH_UM", "FWHM_UM"), 1e-3, {}),
    ],
)
def test_tags_of_each_band(tmp_path: Path, names, factor, units) -> None:
    tags = [
        {names[0]: repr(float(nm * factor)), names[1]: repr(10 * factor), "bbl": flag} | units
        for nm, flag in zip(NM, "101", strict=True)
    ]
    for ns in (None, "IMAGERY"):
        cube = hr.open_scene(tagged(tmp_path / f"{ns}.tif", tags, ns=ns))
        np.testing.assert_allclose(cube.wavelength, NM, rtol=1e-12)
        np.testing.assert_allclose(cube.fwhm, 10, rtol=1e-12)
        np.testing.assert_array_equal(cube.good_band, [True, False, True])


def test_a_unit_beside_the_number(tmp_path: Path) -> None:
    tags = [{"wavelength": f"{nm / 1000} um"} for nm in NM]
    cube = hr.open_scene(tagged(tmp_path / "scene.tif", tags))
    np.testing.assert_allclose(cube.wavelength, NM, rtol=1e-12)
    assert guesses(cube) == ""


def test_bands_without_a_tag_have_no_wavelength(tmp_path: Path) -> None:
    tags = [{"wavelength": "450.5"}, {}, {"wavelength": "650.25"}]
    cube = hr.open_scene(tagged(tmp_path / "scene.tif", tags))
    np.testing.assert_array_equal(cube.wavelength, [450.5, np.nan, 650.25])
    assert "1 of 3 bands have no wavelength tag" in guesses(cube)


def test_band_descriptions(tmp_path: Path) -> None:
    path = tagged(tmp_path / "scene.tif", [])
    with rasterio.open(path, "r+") as dataset:
        dataset.descriptions = [f"Band {i} ({nm} nm)" for i, nm in enumerate(NM, start=1)]
    np.testing.assert_array_equal(hr.open_scene(path).wavelength, NM)


def test_attributes_left_by_other_software_do_no_harm(tmp_path: Path) -> None:
    """GeoTIFFs made from NetCDF carry tags that would rename dimensions or decode times."""
    netcdf = {"NETCDF_DIM_EXTRA": "{time}", "NETCDF_DIM_time_VALUES": "{1,2,3}"}
    path = tagged(tmp_path / "scene.tif", [{"units": "days since 2000-01-01"}] * 3, **{"": netcdf})
    for chunks in (None, {"band": 1}):
        cube = hr.open_scene(path, chunks=chunks)
        assert cube.dims == schema.CUBE_DIMS
        np.testing.assert_array_equal(cube.values, random_cube(shape=(3, 4, 5)))


def test_a_tiff_with_the_header_of_envi(tmp_path: Path) -> None:
    path = tagged(tmp_path / "scene.tif", [])
    header = "ENVI\nfile type = TIFF\nwavelength = {0.4505, 0.55, 0.65025}\nbbl = {1, 0, 1}\n"
    (tmp_path / "scene.hdr").write_text(header)
    cube = hr.open_scene(path)
    np.testing.assert_allclose(cube.wavelength, NM, rtol=1e-12)
    assert "described by scene.hdr" in guesses(cube)
    assert hr.open_scene(tmp_path / "scene.hdr").identical(cube)
    (tmp_path / "scene.hdr").write_text(header.replace("TIFF", "ENVI Standard"))
    assert schema.WAVELENGTH not in hr.open_scene(path).coords  # it belongs to another file
