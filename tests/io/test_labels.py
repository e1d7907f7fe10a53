"""Label rasters: names, colours, nodata and values come out right, on the grid of a scene."""

import re
from pathlib import Path

import geopandas
import numpy as np
import pytest
import rasterio
import shapely
from rasterio.transform import Affine

import hsreject as hr
from hsreject import schema
from hsreject.errors import FileError, InputError
from tests.io.writers import UTM, random_cube, write_envi, write_with_gdal

VALUES = np.array([[[0, 1, 2], [2, 2, 1]]], dtype=np.uint8)


def test_geotiff_with_names_and_colours(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "labels.tif", VALUES)
    with rasterio.open(path, "r+") as dataset:
        dataset.write_colormap(1, {0: (0, 0, 0), 1: (170, 85, 0), 2: (0, 0, 255)})
    (tmp_path / "labels.tif.aux.xml").write_text(
        '<PAMDataset><PAMRasterBand band="1"><CategoryNames><Category/>'
        "<Category>bare soil</Category><Category>water</Category></CategoryNames>"
        "</PAMRasterBand></PAMDataset>"
    )
    labels = hr.open_labels(path)
    table = schema.class_table(labels)
    assert labels.dims == schema.MAP_DIMS
    assert labels.dtype == np.uint8
    np.testing.assert_array_equal(labels.values, VALUES[0])
    assert table.names == ("bare soil", "water")
    assert table.colors == ("#aa5500", "#0000ff")
    assert labels.rio.crs.to_epsg() == 32633
    assert "guesses" not in labels.attrs


def attribute_table(columns: list, rows: list) -> str:
    """Return GDAL's side file with an attribute table: columns are (name, type, usage)."""
    definitions = "".join(
        f'<FieldDefn index="{i}"><Name>{name}</Name><Type>{kind}</Type>'
        f"<Usage>{usage}</Usage></FieldDefn>"
        for i, (name, kind, usage) in enumerate(columns)
    )
    cells = "".join(
        f'<Row index="{i}">{"".join(f"<F>{cell}</F>" for cell in row)}</Row>'
        for i, row in enumerate(rows)
    )
    return (
        '<PAMDataset><PAMRasterBand band="1"><GDALRasterAttributeTable>'
        f"{definitions}{cells}</GDALRasterAttributeTable></PAMRasterBand></PAMDataset>"
    )


def test_geotiff_with_an_attribute_table(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "labels.tif", VALUES)
    columns = [("Value", 0, 5), ("Class", 2, 2), ("Red", 0, 6), ("Green", 0, 7), ("Blue", 0, 8)]
    rows = [(1, "bare soil", 170, 85, 0), (2, "water", 0, 0, 255)]
    (tmp_path / "labels.tif.aux.xml").write_text(attribute_table(columns, rows))
    table = schema.class_table(hr.open_labels(path))
    assert table.values == (1, 2)
    assert table.names == ("bare soil", "water")
    assert table.colors == ("#aa5500", "#0000ff")


def test_an_attribute_table_whose_values_are_words_names_nothing(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "labels.tif", VALUES)
    columns = [("Value", 2, 5), ("Class", 2, 2)]
    (tmp_path / "labels.tif.aux.xml").write_text(
        attribute_table(columns, [("one", "soil"), ("", "water")])
    )
    assert schema.class_table(hr.open_labels(path)).names == ("class 1", "class 2")


def envi_classes(folder: Path, names: str, values: np.ndarray = VALUES, **fields) -> Path:
    stated = {
        "file type": "ENVI Classification",
        "classes": names.count(",") + 1,
        "class names": f"{{{names}}}",
        "class lookup": "{0,0,0, 170,85,0, 0,0,255}",
    }
    return write_envi(
        folder, values, data_name="labels", header_name="labels.hdr", fields=stated | fields
    )


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_envi_classification(tmp_path: Path, dtype) -> None:
    envi_classes(tmp_path, "Unclassified, bare soil, Gewässer", VALUES.astype(dtype))
    for given in ("labels", "labels.hdr"):
        labels = hr.open_labels(tmp_path / given)
        table = schema.class_table(labels)
        np.testing.assert_array_equal(labels.values, VALUES[0])
        assert table.names == ("bare soil", "Gewässer")
        assert table.colors == ("#aa5500", "#0000ff")
        assert dict(hr.describe(tmp_path / given).rows)["Holds"] == "labels"


def test_a_named_zero_is_noted(tmp_path: Path) -> None:
    envi_classes(tmp_path, "forest, bare soil, water")
    labels = hr.open_labels(tmp_path / "labels")
    assert schema.class_table(labels).names == ("bare soil", "water")
    assert "Value 0 is named 'forest' but was read as no reference." in labels.guesses


def test_values_without_a_name_are_named_in_the_error(tmp_path: Path) -> None:
    path = envi_classes(tmp_path, "Unclassified, bare soil")
    with pytest.raises(FileError, match=r"2 \(named are 0, 1\)"):
        hr.open_labels(path)
    labels = hr.open_labels(path, names={1: "soil", 2: "lake", 7: "sea"})
    assert schema.class_table(labels).names == ("soil", "lake", "sea")


def test_plain_names_when_there_are_none(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "labels.tif", VALUES)
    labels = hr.open_labels(path)
    assert schema.class_table(labels).names == ("class 1", "class 2")
    assert labels.guesses == ["The classes have no names: they are called by their value."]


@pytest.mark.parametrize(
    ("dtype", "nodata"), [("uint8", 2), ("int16", -1), ("float32", np.nan), ("float64", -9999.0)]
)
def test_nodata_is_no_reference(tmp_path: Path, dtype, nodata) -> None:
    values = VALUES.astype(dtype)
    values[0, 0, 0] = nodata
    path = write_with_gdal(tmp_path / "labels.tif", values, nodata=nodata)
    labels = hr.open_labels(path)
    assert labels.dtype == np.uint8
    assert labels.attrs["nodata_in_file"] == pytest.approx(nodata, nan_ok=True)
    expected = np.where(VALUES[0] == nodata, 0, VALUES[0])
    np.testing.assert_array_equal(labels.values, expected)


def test_another_nodata_value_may_be_named(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "labels.tif", VALUES)
    np.testing.assert_array_equal(hr.open_labels(path, nodata=2).values, [[0, 1, 0], [0, 0, 1]])


def test_many_classes_need_a_wider_type(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "labels.tif", np.array([[[0, 255, 300]]], dtype=np.int32))
    labels = hr.open_labels(path)
    assert labels.dtype == np.uint16
    np.testing.assert_array_equal(labels.values, [[0, 255, 300]])


def test_what_is_not_a_label_map_is_refused(tmp_path: Path) -> None:
    for values, message in (
        (np.array([[[1.5, 2.0]]], dtype=np.float32), "whole numbers"),
        (np.array([[[-3, 2]]], dtype=np.int16), "found -3 to 2"),
        (np.array([[[70000, 2]]], dtype=np.int32), "found 2 to 70000"),
        (np.ones((3, 2, 2), dtype=np.uint8), "3 bands"),
    ):
        with pytest.raises(FileError, match=message):
            hr.open_labels(write_with_gdal(tmp_path / "labels.tif", values))


def test_the_name_of_nodata_is_no_class(tmp_path: Path) -> None:
    values = np.where(VALUES == 2, 3, VALUES).astype(np.uint8)
    path = write_with_gdal(tmp_path / "labels.tif", values, nodata=3)
    (tmp_path / "labels.tif.aux.xml").write_text(
        '<PAMDataset><PAMRasterBand band="1"><CategoryNames><Category>none</Category>'
        "<Category>soil</Category><Category>ice</Category><Category>outside</Category>"
        "</CategoryNames></PAMRasterBand></PAMDataset>"
    )
    labels = hr.open_labels(path)
    assert schema.class_table(labels).names == ("soil", "ice")
    np.testing.assert_array_equal(labels.values, [[0, 1, 0], [0, 0, 1]])


# On the grid of a scene.

EASTWARDS = Affine(30.0, 0.0, UTM.c + 90.0, 0.0, -30.0, UTM.f)


@pytest.fixture
def scene(tmp_path: Path):
    return hr.open_scene(write_with_gdal(tmp_path / "scene.tif", random_cube(shape=(2, 8, 10))))


def label_file(folder: Path, values: np.ndarray, **profile) -> Path:
    return write_with_gdal(folder / "labels.tif", values[None].astype(np.uint8), **profile)


def test_labels_on_the_grid_of_the_scene(tmp_path: Path, scene) -> None:
    values = np.arange(80).reshape(8, 10) % 4
    labels = hr.open_labels(label_file(tmp_path, values), like=scene)
    np.testing.assert_array_equal(labels.values, values)
    schema.check_same_grid(scene, labels, names=("scene", "labels"))
    assert labels.rio.crs == scene.rio.crs


def test_labels_without_a_place_take_that_of_the_scene(tmp_path: Path, scene) -> None:
    np.save(tmp_path / "labels.npy", np.ones((8, 10), dtype=np.int64))
    labels = hr.open_labels(tmp_path / "labels.npy", like=scene)
    np.testing.assert_array_equal(labels.x, scene.x)
    assert labels.rio.crs == scene.rio.crs
    told = "labels.npy has no place on a map: its pixels are those of the scene."
    assert told in labels.attrs["guesses"]


@pytest.mark.parametrize("align", ["exact", "nearest"])
def test_a_missing_reference_system_is_told(tmp_path: Path, scene, align) -> None:
    moved = UTM if align == "exact" else EASTWARDS
    path = label_file(tmp_path, np.ones((8, 10)), crs=None, transform=moved)
    labels = hr.open_labels(path, like=scene, align=align)
    told = "labels.tif has no reference system: taken for that of the scene."
    assert told in labels.attrs["guesses"]


def test_labels_elsewhere_are_refused(tmp_path: Path, scene) -> None:
    far = Affine(30.0, 0.0, UTM.c + 9e5, 0.0, -30.0, UTM.f)
    path = label_file(tmp_path, np.ones((8, 10)), transform=far)
    with pytest.raises(InputError, match=r"No label of .* meets a pixel of the scene"):
        hr.open_labels(path, like=scene, align="nearest")


def test_a_grid_upside_down_is_called_so(tmp_path: Path, scene) -> None:
    south_up = Affine(30.0, 0.0, UTM.c, 0.0, 30.0, UTM.f - 240)
    path = label_file(tmp_path, np.arange(80).reshape(8, 10) % 4, transform=south_up)
    with pytest.raises(InputError, match="first row in the south, in EPSG:32633; the scene"):
        hr.open_labels(path, like=scene)
    labels = hr.open_labels(path, like=scene, align="nearest")
    np.testing.assert_array_equal(labels.values, (np.arange(80).reshape(8, 10) % 4)[::-1])


@pytest.mark.parametrize(
    "profile",
    [
        {"transform": EASTWARDS},
        {"transform": Affine(15.0, 0.0, UTM.c, 0.0, -15.0, UTM.f)},
        {"crs": "EPSG:32632"},
    ],
    ids=["moved", "finer", "another zone"],
)
def test_another_grid_is_refused_in_words(tmp_path: Path, scene, profile) -> None:
    path = label_file(tmp_path, np.ones((8, 10)), **profile)
    with pytest.raises(InputError) as caught:
        hr.open_labels(path, like=scene)
    message = str(caught.value)
    assert len(re.findall(r"8 rows x 10 columns, pixels of", message)) == 2
    assert "EPSG:32633" in message
    assert "Pass align='nearest'" in message


def test_another_size_without_a_place_cannot_be_aligned(tmp_path: Path, scene) -> None:
    np.save(tmp_path / "labels.npy", np.ones((4, 10), dtype=np.uint8))
    with pytest.raises(InputError, match="4 rows x 10 columns without a place on a map"):
        hr.open_labels(tmp_path / "labels.npy", like=scene, align="nearest")


def test_nearest_neighbor_onto_a_shifted_crop(tmp_path: Path, scene) -> None:
    """Three columns to the east and twice as fine: every scene pixel has a known label."""
    fine = np.repeat(np.repeat(np.arange(1, 81).reshape(8, 10), 2, axis=0), 2, axis=1)
    transform = Affine(15.0, 0.0, EASTWARDS.c, 0.0, -15.0, EASTWARDS.f)
    path = label_file(tmp_path, fine, transform=transform)
    labels = hr.open_labels(path, like=scene, align="nearest")
    coarse = np.arange(1, 81).reshape(8, 10)
    expected = np.zeros((8, 10), dtype=int)
    expected[:, 3:] = coarse[:, :7]
    np.testing.assert_array_equal(labels.values, expected)
    np.testing.assert_array_equal(labels.x, scene.x)


def test_nearest_neighbor_from_another_reference_system(tmp_path: Path, scene) -> None:
    """A block of one class, 10 pixels wide in degrees, covers the middle of the scene."""
    west, south, east, north = (
        geopandas.GeoSeries([shapely.box(*scene.rio.bounds())], crs=32633).to_crs(4326).total_bounds
    )
    step = (east - west) / 10
    transform = Affine(step, 0, west, 0, -(north - south) / 8, north)
    path = label_file(tmp_path, np.full((8, 10), 3), crs="EPSG:4326", transform=transform)
    labels = hr.open_labels(path, like=scene, align="nearest")
    assert labels.rio.crs.to_epsg() == 32633
    assert (labels.values[1:-1, 1:-1] == 3).all()
