"""Label rasters: names, colours, nodata and values come out right, on the grid of a scene."""

from pathlib import Path

import geopandas
import numpy as np
import pytest
import rasterio
import shapely
import xarray as xr
from rasterio.enums import Resampling
from rasterio.transform import Affine
from rasterio.warp import reproject, transform_bounds
from rasterio.windows import Window

import hsreject as hr
from hsreject import schema
from hsreject.errors import FileError, InputError
from hsreject.io.grid import PixelGrid
from tests.io.writers import UTM, guesses, random_cube, write_envi, write_with_gdal

VALUES = np.array([[[0, 1, 2], [2, 2, 1]]], dtype=np.uint8)
SOIL_AND_WATER = hr.ClassTable.from_names(["bare soil", "water"], colors=["#aa5500", "#0000ff"])


def side_file(path: Path, text: str) -> None:
    """Write what GDAL keeps beside a raster about its band."""
    path.with_name(f"{path.name}.aux.xml").write_text(
        f'<PAMDataset><PAMRasterBand band="1">{text}</PAMRasterBand></PAMDataset>'
    )


def category_names(*names: str) -> str:
    listed = "".join(f"<Category>{name}</Category>" for name in names)
    return f"<CategoryNames>{listed}</CategoryNames>"


def test_geotiff_with_names_and_colours(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "labels.tif", VALUES)
    with rasterio.open(path, "r+") as dataset:
        dataset.write_colormap(1, {0: (0, 0, 0), 1: (170, 85, 0), 2: (0, 0, 255)})
    side_file(path, category_names("", "bare soil", "water"))
    labels = hr.open_labels(path)
    assert labels.dims == schema.MAP_DIMS
    assert labels.dtype == np.uint8
    np.testing.assert_array_equal(labels.values, VALUES[0])
    assert schema.class_table(labels) == SOIL_AND_WATER
    assert labels.rio.crs.to_epsg() == 32633
    assert "guesses" not in labels.attrs


def attribute_table(columns: list, rows: list) -> str:
    """Return an attribute table as GDAL writes it: columns are (name, type, usage)."""
    definitions = "".join(
        f'<FieldDefn index="{i}"><Name>{name}</Name><Type>{kind}</Type>'
        f"<Usage>{usage}</Usage></FieldDefn>"
        for i, (name, kind, usage) in enumerate(columns)
    )
    cells = "".join(
        f'<Row index="{i}">{"".join(f"<F>{cell}</F>" for cell in row)}</Row>'
        for i, row in enumerate(rows)
    )
    return f"<GDALRasterAttributeTable>{definitions}{cells}</GDALRasterAttributeTable>"


def test_geotiff_with_an_attribute_table(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "labels.tif", VALUES)
    columns = [("Value", 0, 5), ("Class", 2, 2), ("Red", 0, 6), ("Green", 0, 7), ("Blue", 0, 8)]
    rows = [(1, "bare soil", 170, 85, 0), (2, "water", 0, 0, 255)]
    side_file(path, attribute_table(columns, rows))
    assert schema.class_table(hr.open_labels(path)).names == SOIL_AND_WATER.names
    words = attribute_table([("Value", 2, 5), ("Class", 2, 2)], [("one", "soil"), ("", "water")])
    side_file(path, words)  # values that are not numbers name nothing
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
    assert "Value 0 is named 'forest'" in guesses(labels)


def test_values_without_a_name_are_named_in_the_error(tmp_path: Path) -> None:
    path = envi_classes(tmp_path, "Unclassified, bare soil")
    with pytest.raises(FileError, match=r"2 \(named are 0, 1\)"):
        hr.open_labels(path)
    labels = hr.open_labels(path, names={1: "soil", 2: "lake", 7: "sea"})
    assert schema.class_table(labels).names == ("soil", "lake", "sea")


def test_plain_names_and_another_nodata_value(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "labels.tif", VALUES)
    labels = hr.open_labels(path)
    assert schema.class_table(labels).names == ("class 1", "class 2")
    assert labels.guesses == ["The classes have no names: they are called by their value."]
    np.testing.assert_array_equal(hr.open_labels(path, nodata=2).values, [[0, 1, 0], [0, 0, 1]])


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
    side_file(path, category_names("none", "soil", "ice", "outside"))
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
    np.save(tmp_path / "labels.npy", values)  # without a place, which they take from the scene
    for path in (label_file(tmp_path, values), tmp_path / "labels.npy"):
        labels = hr.open_labels(path, like=scene)
        np.testing.assert_array_equal(labels.values, values)
        np.testing.assert_array_equal(labels.x, scene.x)
        np.testing.assert_array_equal(labels.y, scene.y)
        assert labels.rio.crs == scene.rio.crs
    assert "labels.npy has no place on a map" in guesses(labels)


@pytest.mark.parametrize("align", ["exact", "nearest"])
def test_a_missing_reference_system_is_told(tmp_path: Path, scene, align) -> None:
    moved = UTM if align == "exact" else EASTWARDS
    path = label_file(tmp_path, np.ones((8, 10)), crs=None, transform=moved)
    labels = hr.open_labels(path, like=scene, align=align)
    assert "labels.tif has no reference system" in guesses(labels)


@pytest.mark.parametrize("align", ["exact", "nearest"])
def test_labels_elsewhere_are_refused(tmp_path: Path, scene, align) -> None:
    far = Affine(30.0, 0.0, UTM.c + 9e5, 0.0, -30.0, UTM.f)
    path = label_file(tmp_path, np.ones((8, 10)), transform=far)
    with pytest.raises(InputError, match="do not overlap the scene"):
        hr.open_labels(path, like=scene, align=align)


def test_a_grid_upside_down_is_called_so(tmp_path: Path, scene) -> None:
    south_up = Affine(30.0, 0.0, UTM.c, 0.0, 30.0, UTM.f - 240)
    values = np.arange(80).reshape(8, 10) % 4
    path = label_file(tmp_path, values, transform=south_up)
    with pytest.raises(InputError, match="first row in the south"):
        hr.open_labels(path, like=scene)
    labels = hr.open_labels(path, like=scene, align="nearest")
    np.testing.assert_array_equal(labels.values, values[::-1])


def test_another_grid_is_refused_in_words(tmp_path: Path, scene) -> None:
    finer = Affine(15.0, 0.0, UTM.c, 0.0, -15.0, UTM.f)
    for profile in ({"transform": EASTWARDS}, {"transform": finer}):
        path = label_file(tmp_path, np.ones((8, 10)), **profile)
        both = r"8 rows x 10 columns.*8 rows x 10 columns.*EPSG:32633.*align='nearest'"
        with pytest.raises(InputError, match=both):
            hr.open_labels(path, like=scene)
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


@pytest.mark.parametrize(("odd", "dtype"), [(255, "u1"), (65535, "u2"), (-9999, "i2"), (-1, "i1")])
def test_a_value_far_from_the_others_is_asked_about(tmp_path: Path, odd, dtype) -> None:
    path = tmp_path / "labels.npy"
    np.save(path, np.array([[1, 2, odd, odd]], dtype=dtype))
    with pytest.raises(FileError, match=f"{odd} of 2 pixels.*nodata={odd}"):
        hr.open_labels(path)
    assert hr.open_labels(path, nodata=odd).values.tolist() == [[1, 2, 0, 0]]


def test_a_value_far_from_the_others_may_be_a_class(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.array([[1, 2, 255]], dtype=np.uint8))
    names = {1: "corn", 2: "soil", 255: "town"}
    assert hr.open_labels(tmp_path / "labels.npy", names=names).values.max() == 255
    np.save(tmp_path / "many.npy", np.arange(256).reshape(16, 16))
    assert hr.open_labels(tmp_path / "many.npy").values.max() == 255


def test_labels_that_wrapped_around_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.array([[100, 127, 128, 150]]).astype(np.int8))
    with pytest.raises(FileError, match=r"int8.*wrapped"):
        hr.open_labels(tmp_path / "labels.npy")


@pytest.mark.parametrize("crs", [32633, 32632, 4326])
def test_of_labels_larger_than_memory_the_part_around_the_scene_is_read(
    tmp_path: Path, crs: int
) -> None:
    scene = xr.DataArray(np.zeros((20, 30)), dims=("y", "x"))
    scene = scene.rio.write_crs(32633).rio.write_transform(UTM)
    box = transform_bounds(32633, crs, *PixelGrid.of(scene).bounds)
    side, n = (box[2] - box[0]) / 60, 60_000  # 3.6 GB of labels
    west, north = box[0] - 30_000 * side, box[3] + 30_000 * side
    path = tmp_path / "country.tif"
    options = {"tiled": True, "compress": "deflate", "SPARSE_OK": True, "crs": f"EPSG:{crs}"}
    with rasterio.open(
        path, "w", driver="GTiff", width=n, height=n, count=1, dtype="uint8",
        transform=Affine(side, 0, west, 0, -side, north), **options,
    ) as file:  # fmt: skip
        window = Window(29_900, 29_900, 400, 400)
        file.write(1 + np.indices((400, 400)).sum(0).astype("uint8") // 40 % 5, 1, window=window)
    labels = hr.open_labels(path, like=scene, align="nearest")
    with rasterio.open(path) as file:
        expected = np.zeros(scene.shape, "uint8")
        reproject(
            file.read(1, window=window),
            expected,
            src_transform=file.window_transform(window),
            src_crs=crs,
            dst_transform=UTM,
            dst_crs=32633,
            resampling=Resampling.nearest,
        )
    assert expected.all()
    np.testing.assert_array_equal(labels, expected)
    with pytest.raises(InputError, match="60000 rows"):
        hr.open_labels(path, like=scene)
    elsewhere = scene.rio.write_transform(Affine(30, 0, 900_000, 0, -30, 100_000))
    with pytest.raises(InputError, match="do not overlap"):
        hr.open_labels(path, like=elsewhere, align="nearest")
