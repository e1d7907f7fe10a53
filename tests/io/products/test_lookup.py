"""Maps of scenes in sensor geometry are written where the lookup table says."""

from pathlib import Path

import geopandas
import h5py
import numpy as np
import pytest
import rasterio
import xarray as xr
from shapely.geometry import box

import hsreject as hr
from hsreject import schema
from hsreject.errors import FileError
from hsreject.schema.classes import ClassTable
from tests.io.products.writers import DEGREES, UTM, reflectance, write_aviris, write_emit

ROWS, COLUMNS, BANDS = 24, 20, 8
CLASSES = ClassTable.from_names(["left", "right"])


def turned_table(height: int = 40, width: int = 44) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column from 1 of the sensor, askew to the map, 0 outside its image."""
    y, x = np.mgrid[0:height, 0:width]
    row = np.round(0.8 * (y - 20) + 0.3 * (x - 22) + ROWS / 2).astype(int)
    column = np.round(-0.3 * (y - 20) + 0.8 * (x - 22) + COLUMNS / 2).astype(int)
    outside = (row < 1) | (row > ROWS) | (column < 1) | (column > COLUMNS)
    return np.where(outside, 0, row), np.where(outside, 0, column)


ROW, COLUMN = turned_table()
KNOWN = ROW > 0


def two_halves() -> np.ndarray:
    """Return a cube whose left and right halves have different spectra."""
    cube = 0.01 * reflectance((BANDS, ROWS, COLUMNS))
    cube[: BANDS // 2, :, : COLUMNS // 2] += 0.5
    cube[BANDS // 2 :, :, COLUMNS // 2 :] += 0.5
    return cube.astype("float32")


@pytest.fixture
def emit(tmp_path: Path) -> Path:
    return write_emit(tmp_path / "EMIT_L2A_RFL_001.nc", two_halves(), (ROW, COLUMN))


def slowly(values: np.ndarray, missing: float, row=ROW, column=COLUMN) -> np.ndarray:
    """Return the map pixel by pixel."""
    out = np.full(row.shape, missing, dtype=values.dtype)
    for place in np.ndindex(*row.shape):
        if row[place] > 0:
            out[place] = values[row[place] - 1, column[place] - 1]
    return out


def sensor_labels(cube: xr.DataArray) -> xr.DataArray:
    values = np.arange(ROWS * COLUMNS, dtype="uint16").reshape(ROWS, COLUMNS) % 250 + 1
    labels = cube.isel(band=0, drop=True).copy(data=values).drop_attrs()
    return labels.rename("label")


def test_labels_and_confidence_are_ortho_rectified(emit: Path, tmp_path: Path) -> None:
    cube = hr.open_scene(emit)
    labels = sensor_labels(cube)
    confidence = cube[0].rename("confidence")
    for array, missing in ((labels, 65535), (confidence, np.nan), (confidence.chunk(), np.nan)):
        hr.write_map(array, tmp_path / "map.tif", overwrite=True)
        with rasterio.open(tmp_path / "map.tif") as file:
            assert file.crs.to_epsg() == 4326
            assert file.transform == DEGREES
            assert file.nodata == missing or np.isnan(file.nodata)
            np.testing.assert_array_equal(file.read(1), slowly(array.values, missing))
    hr.write_map(labels == 1, tmp_path / "truth.tif")
    with rasterio.open(tmp_path / "truth.tif") as file:
        expected = np.where(KNOWN, slowly(labels.values, 0) == 1, 255)
        np.testing.assert_array_equal(file.read(1), expected)


def test_a_crop_finds_its_place(emit: Path, tmp_path: Path) -> None:
    cube = hr.open_scene(emit, chunks={"y": 5})
    whole = cube[0].values
    rows, columns = slice(4, 17), slice(3, 11)
    hr.write_map(cube[0, rows, columns], tmp_path / "crop.tif")
    kept = np.full_like(whole, np.nan)
    kept[rows, columns] = whole[rows, columns]
    with rasterio.open(tmp_path / "crop.tif") as file:
        np.testing.assert_array_equal(file.read(1), slowly(kept, np.nan))


def test_fields_are_ortho_rectified_class_by_class(emit: Path, tmp_path: Path) -> None:
    cube = hr.open_scene(emit)
    field = xr.concat([cube[0], cube[1]], dim=xr.Variable("category", [1, 2])).drop_vars("band")
    hr.write_map(schema.attach_classes(field, CLASSES), tmp_path / "field.tif")
    with rasterio.open(tmp_path / "field.tif") as file:
        for band in (0, 1):
            expected = slowly(cube[band].values, np.nan)
            np.testing.assert_array_equal(file.read(band + 1), expected)


def test_the_table_survives_a_dataset_on_disk(emit: Path, tmp_path: Path) -> None:
    cube = hr.open_scene(emit)
    hr.write_dataset(cube[0].drop_attrs().to_dataset(name="confidence"), tmp_path / "result.nc")
    with hr.open_dataset(tmp_path / "result.nc") as back:
        hr.write_map(back["confidence"], tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.transform == DEGREES
        np.testing.assert_array_equal(file.read(1), slowly(cube[0].values, np.nan))


def test_a_lost_product_is_named(emit: Path, tmp_path: Path) -> None:
    cube = hr.open_scene(emit)
    emit.unlink()
    with pytest.raises(FileError, match=r"EMIT_L2A_RFL_001\.nc does not exist"):
        hr.write_map(cube[0], tmp_path / "map.tif")
    assert not (tmp_path / "map.tif").exists()


def test_negative_entries_of_aviris_fill_gaps(tmp_path: Path) -> None:
    cube = two_halves()
    row, column = ROW.copy(), COLUMN.copy()
    row[::3], column[::3] = -row[::3], -column[::3]
    scene = hr.open_scene(write_aviris(tmp_path / "a.nc", cube, (row, column), what="radiance"))
    hr.write_map(scene[0], tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.crs.to_epsg() == 32633
        assert file.transform == UTM
        np.testing.assert_array_equal(file.read(1), slowly(cube[0], np.nan))


def test_negative_entries_of_emit_are_gaps(tmp_path: Path) -> None:
    cube = two_halves()
    scene = hr.open_scene(write_emit(tmp_path / "e.nc", cube, (-ROW, -COLUMN)))
    hr.write_map(scene[0], tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif") as file:
        assert np.isnan(file.read(1)).all()


# Reference labels, which people have on maps.


def test_polygons_are_brought_into_sensor_geometry(emit: Path, tmp_path: Path) -> None:
    cube = hr.open_scene(emit)
    left, bottom, right, top = rasterio.transform.array_bounds(*ROW.shape, DEGREES)
    middle = (left + right) / 2
    halves = [box(left, bottom, middle, top), box(middle, bottom, right, top)]
    fields = geopandas.GeoDataFrame({"kind": [1, 2]}, geometry=halves, crs="EPSG:4326")
    fields.to_file(tmp_path / "fields.gpkg")
    labels = hr.open_labels(tmp_path / "fields.gpkg", like=cube, attribute="kind")
    assert labels.shape == (ROWS, COLUMNS)
    shown: dict[tuple[int, int], set[int]] = {}
    for y, x in zip(*np.nonzero(KNOWN), strict=True):
        where = int(ROW[y, x]) - 1, int(COLUMN[y, x]) - 1
        shown.setdefault(where, set()).add(1 if x < ROW.shape[1] / 2 else 2)
    for place in np.ndindex(ROWS, COLUMNS):
        found = shown.get(place, set())
        assert labels.values[place] == (found.pop() if len(found) == 1 else 0)
    hr.write_map(labels, tmp_path / "back.tif")  # a map again


def test_a_raster_on_the_map_is_brought_into_sensor_geometry(emit: Path, tmp_path: Path) -> None:
    cube = hr.open_scene(emit)[:, 2:20]
    values = np.where(np.arange(COLUMNS) < COLUMNS // 2, 1, 2)
    labels = cube[0].drop_attrs().copy(data=np.broadcast_to(values, (18, COLUMNS)))
    labels = schema.attach_classes(labels.astype("uint8").rename("label"), CLASSES)
    hr.write_map(labels, tmp_path / "labels.tif")
    back = hr.open_labels(tmp_path / "labels.tif", like=cube)
    shown = np.zeros((ROWS, COLUMNS), dtype=bool)
    shown[ROW[KNOWN] - 1, COLUMN[KNOWN] - 1] = True
    np.testing.assert_array_equal(back.values, np.where(shown[2:20], labels.values, 0))
    assert schema.class_table(back).names == ("left", "right")


def test_labels_without_a_place_fit_the_sensor(emit: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.ones((ROWS, COLUMNS), dtype="uint8"))
    labels = hr.open_labels(tmp_path / "labels.npy", like=hr.open_scene(emit))
    assert labels.values.all()


# The whole way.


@pytest.fixture
def config(emit: Path, tmp_path: Path) -> dict:
    labels = np.where(np.arange(COLUMNS) < COLUMNS // 2, 1, 2) * np.ones((ROWS, 1), dtype="uint8")
    np.save(tmp_path / "labels.npy", labels.astype("uint8"))
    return {
        "scene": {"name": "files", "path": str(emit), "labels": str(tmp_path / "labels.npy")},
        "sampling": {"name": "per_class", "n_per_class": 20},
        "features": [{"name": "pca", "n_components": 3}],
        "classifier": "lda",
    }


def check_map(path: Path, expected: np.ndarray, missing: float) -> None:
    with rasterio.open(path) as file:
        assert file.crs.to_epsg() == 4326
        assert file.transform == DEGREES
        np.testing.assert_array_equal(file.read(1), slowly(expected, missing))


def test_a_run_writes_maps_on_the_ground(config: dict, tmp_path: Path) -> None:
    result = hr.run(config, out=tmp_path / "out")
    rejector = str(result.rejector.values[0])
    for name, missing in (("label", 255), ("label_with_rejection", 255), ("confidence", np.nan)):
        values = result[name].sel(rejector=rejector).values
        if name == "confidence":
            values = values.astype("float32")
        file = "map.tif" if name == "label_with_rejection" else f"{name}_{rejector}.tif"
        check_map(tmp_path / "out" / "maps" / file, values, missing)
    with rasterio.open(tmp_path / "out" / "maps" / "reference.tif") as file:
        assert file.transform == DEGREES


@pytest.mark.parametrize("block_size", [None, 16])
def test_a_scene_is_mapped_onto_the_ground(
    config: dict, emit: Path, tmp_path: Path, block_size: int | None
) -> None:
    model = hr.train(config)
    options = {
        "resources": hr.Resources(block_size=block_size),
        "layers": hr.Layers(probabilities=True),
    }
    in_memory = hr.map_scene(emit, model, hr.Goal(fraction=0.1), **options)
    made = hr.map_scene(emit, model, hr.Goal(fraction=0.1), out=tmp_path / "out", **options)
    assert in_memory.maps["label"].shape == (ROWS, COLUMNS)
    assert made.summary.n_rejected == in_memory.summary.n_rejected
    for name, missing in (("label", 255), ("label_with_rejection", 255), ("confidence", np.nan)):
        check_map(tmp_path / "out" / f"{name}.tif", in_memory.maps[name].values, missing)
        assert made.maps[name].shape == ROW.shape
    with rasterio.open(tmp_path / "out" / "map_filled.tif") as filled:
        label, flag = filled.read([1, 2])
        assert filled.transform == made.maps["label"].rio.transform()
    np.testing.assert_array_equal(label, made.maps["label"])
    np.testing.assert_array_equal(flag == 0, made.maps["label"] == 255)
    for probability, sensed in zip(made.maps.probability, in_memory.maps.probability, strict=True):
        np.testing.assert_array_equal(probability, slowly(sensed.values, np.nan))


def test_a_file_without_a_table_stays_in_sensor_geometry(tmp_path: Path) -> None:
    path = write_emit(tmp_path / "e.nc", two_halves())
    cube = hr.open_scene(path)
    assert "lookup table" in " ".join(cube.attrs["guesses"])
    hr.write_map(cube[0], tmp_path / "map.tif")
    with h5py.File(path) as file, rasterio.open(tmp_path / "map.tif") as written:
        assert written.crs is None
        np.testing.assert_array_equal(written.read(1), file["reflectance"][..., 0])


@pytest.mark.parametrize("stated", ['{"file": "scene.nc", "grid": 1}', "scene.nc", "[1, 2]"])
def test_a_table_that_another_version_noted_is_refused(emit: Path, tmp_path: Path, stated) -> None:
    labels = sensor_labels(hr.open_scene(emit)).assign_coords(lookup_table=stated)
    with pytest.raises(FileError, match="another version"):
        hr.write_map(labels, tmp_path / "map.tif")
