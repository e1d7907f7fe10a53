"""Label rasters: names, colours, nodata and values come out of every format."""

from pathlib import Path

import numpy as np
import pytest
import rasterio

import hsreject as hr
from hsreject import schema
from hsreject.errors import FileError
from hsreject.io.describe import describe
from tests.io.writers import write_envi, write_with_gdal

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


def test_a_classification_of_floats_is_described_as_labels(tmp_path: Path) -> None:
    path = envi_classes(tmp_path, "Unclassified, soil, water", VALUES.astype(np.float32))
    assert dict(describe(path).rows)["Holds"] == "labels"


def test_nodata_is_described(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "labels.tif", VALUES, nodata=2)
    assert dict(describe(path).rows)["Nodata value"] == "2"


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


@pytest.mark.parametrize("given", ["labels", "labels.hdr"])
def test_envi_classification(tmp_path: Path, given) -> None:
    envi_classes(tmp_path, "Unclassified, bare soil, Gewässer")
    labels = hr.open_labels(tmp_path / given)
    table = schema.class_table(labels)
    np.testing.assert_array_equal(labels.values, VALUES[0])
    assert table.names == ("bare soil", "Gewässer")
    assert table.colors == ("#aa5500", "#0000ff")


def test_a_named_zero_is_noted(tmp_path: Path) -> None:
    envi_classes(tmp_path, "forest, bare soil, water")
    labels = hr.open_labels(tmp_path / "labels")
    assert schema.class_table(labels).names == ("bare soil", "water")
    assert "Value 0 is named 'forest' but was read as no reference." in labels.guesses


def test_values_without_a_name_are_named_in_the_error(tmp_path: Path) -> None:
    path = envi_classes(tmp_path, "Unclassified, bare soil")
    with pytest.raises(FileError, match=r"has label values without a name: 2 \(named are 0, 1\)"):
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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[[1.5, 2.0]]], dtype=np.float32), "must be whole numbers"),
        (np.array([[[-3, 2]]], dtype=np.int16), "must lie between 0"),
        (np.array([[[70000, 2]]], dtype=np.int32), "must lie between 0"),
        (np.ones((3, 2, 2), dtype=np.uint8), "has 3 bands, but labels have one"),
    ],
)
def test_what_is_no_label_map_is_refused(tmp_path: Path, values, message) -> None:
    path = write_with_gdal(tmp_path / "labels.tif", values)
    with pytest.raises(FileError, match=message):
        hr.open_labels(path)


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


@pytest.mark.parametrize("name", ["map.tif", "map.dat"])
def test_written_maps_come_back(tmp_path: Path, name) -> None:
    path = write_with_gdal(tmp_path / "labels.tif", VALUES)
    labels = hr.open_labels(path, names=["bare soil", "water"])
    hr.write_map(labels, tmp_path / name)
    back = hr.open_labels(tmp_path / name, like=labels)
    np.testing.assert_array_equal(back.values, labels.values)
    assert schema.class_table(back) == schema.class_table(labels)
