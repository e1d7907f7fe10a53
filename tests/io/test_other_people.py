"""What users bring that is right, or wrong in a way that deserves one sentence."""

import os
from pathlib import Path

import numpy as np
import pyogrio
import pytest
import rasterio
import rioxarray  # noqa: F401 - registers the .rio accessor
import shapely
import xarray as xr

import hsreject as hr
from hsreject.errors import FileError, HsrejectError, InputError
from hsreject.schema import attach_classes
from hsreject.schema.classes import ClassTable
from tests.io.products.writers import (
    reflectance,
    write_aviris,
    write_emit,
)
from tests.io.writers import UTM, random_cube, write_with_gdal

LABEL = xr.DataArray(np.tile(np.array([1, 2], "uint8"), (6, 4)), dims=("y", "x"))


def test_lookup_tables_of_two_shapes_are_refused_at_once(tmp_path: Path) -> None:
    table = (np.ones((4, 5)), np.ones((5, 4)))
    for write in (write_emit, write_aviris):
        with pytest.raises(FileError, match="lookup table"):
            hr.open_scene(write(tmp_path / "a.nc", reflectance(), table), chunks="auto")


@pytest.mark.parametrize("name", ["a.geojson", "a.gpkg", "a.shp"])
@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"type": "FeatureCollection", "features": [', b"SQLite"]
)
def test_samples_that_are_empty_or_damaged(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(HsrejectError):
        hr.open_sample(tmp_path / name, LABEL)


def test_a_sample_of_no_points(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,reference,longitude,latitude,row,column")
    label = LABEL.rio.write_crs(32633).rio.write_transform(UTM)
    with pytest.raises(FileError, match="no points"):
        hr.open_sample(tmp_path / "a.csv", label)


def test_points_that_are_nowhere(tmp_path: Path) -> None:
    label = LABEL.rio.write_crs(32633).rio.write_transform(UTM)
    points = [shapely.Point(UTM.c + 15, UTM.f - 15), shapely.Point(np.nan, 1.0)]
    geometry = shapely.to_wkb(points)
    pyogrio.raw.write(
        tmp_path / "a.gpkg",
        geometry=geometry,
        field_data=[np.array([1, 2])],
        fields=["reference"],
        geometry_type="Point",
        crs="EPSG:32633",
        driver="GPKG",
    )
    with pytest.raises(InputError, match="without a place"):
        hr.open_sample(tmp_path / "a.gpkg", label)


def test_names_that_are_too_long(tmp_path: Path) -> None:
    for name in ("x" * 300 + ".tif", "x" * 5000):
        for open_ in (hr.open_scene, hr.open_labels, hr.open_map, hr.load_model):
            with pytest.raises(FileError):
                open_(tmp_path / name)


@pytest.mark.posix
def test_models_are_not_read_from_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.skops")
    for path in (tmp_path / "model.skops", "/dev/zero"):
        with pytest.raises(FileError, match="pipe"):
            hr.load_model(path)


def test_a_url_of_a_file_on_disk(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "a b.tif", random_cube("uint8", (1, 4, 5)))
    assert path.as_uri().startswith("file:")
    assert hr.open_scene(path.as_uri()).shape == (1, 4, 5)
    assert hr.open_labels(path.as_uri()).shape == (4, 5)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Band_503", "Band_508", "Band_1201"], [503, 508, 1201]),
        (["503.2 nm", "508.1 nm", "1201 nm"], [503.2, 508.1, 1201]),
        (["Band_101", "Band_103", "Band_205"], None),
        (["Band_301", "Band_302", "Band_303"], None),
    ],
)
def test_wavelengths_in_band_names(tmp_path: Path, names: list[str], expected: object) -> None:
    path = write_with_gdal(tmp_path / "a.tif", random_cube("uint8", (3, 4, 5)))
    with rasterio.open(path, "r+") as file:
        file.descriptions = names
    cube = hr.open_scene(path)
    assert ("wavelength" in cube.coords) == (expected is not None)
    if expected is not None:
        np.testing.assert_allclose(cube.wavelength, expected)


def test_envi_maps_need_small_values_and_classes_a_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="up to 255"):
        hr.write_map(LABEL.astype("uint16") * 1000, tmp_path / "a.img")
    assert not list(tmp_path.iterdir())
    for name in ("", " "):
        with pytest.raises(InputError, match="blank"):
            ClassTable.from_names(["soil", name])


def test_class_values_of_a_thousand_and_classes_without_a_name_come_back(tmp_path: Path) -> None:
    values = np.array([[0, 1], [1000, 4095]], dtype="uint16")
    label = xr.DataArray(values, dims=("y", "x"))
    table = ClassTable.from_names(["soil", "x", "water"], values=[1, 1000, 4095])
    hr.write_map(attach_classes(label, table), tmp_path / "a.tif")
    with rasterio.open(tmp_path / "a.tif", "r+", IGNORE_COG_LAYOUT_BREAK="YES") as file:
        names = file.tags(1)["class_names"].replace('"x"', '" "')  # by other software
        file.update_tags(1, class_names=names)
    (tmp_path / "a.tif.aux.xml").unlink()
    for back in (hr.open_map(tmp_path / "a.tif"), hr.open_labels(tmp_path / "a.tif")):
        np.testing.assert_array_equal(back.values, values)
        assert hr.schema.class_table(back).values == (1, 1000, 4095)
