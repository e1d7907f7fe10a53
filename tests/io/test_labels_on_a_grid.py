"""Labels and the grid of a scene: exact, aligned when asked, burnt from features."""

import re
from pathlib import Path

import geopandas
import numpy as np
import pytest
import shapely
from rasterio.transform import Affine

import hsreject as hr
from hsreject import schema
from hsreject.errors import FileError, InputError
from tests.io.writers import UTM, random_cube, write_with_gdal

EASTWARDS = Affine(30.0, 0.0, UTM.c + 90.0, 0.0, -30.0, UTM.f)
ROTATED = Affine(26.0, 15.0, 364095.0, 15.0, -26.0, 5809965.0)


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


def test_nearest_neighbour_onto_a_shifted_crop(tmp_path: Path, scene) -> None:
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


def test_nearest_neighbour_from_another_reference_system(tmp_path: Path, scene) -> None:
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


def features(**columns) -> geopandas.GeoDataFrame:
    """Two boxes of whole pixels: rows 0 to 1 of columns 0 to 4, rows 4 to 7 of columns 5 to 9."""
    x, y = UTM.c, UTM.f
    boxes = [shapely.box(x, y - 60, x + 150, y), shapely.box(x + 150, y - 240, x + 300, y - 120)]
    return geopandas.GeoDataFrame(columns, geometry=boxes, crs=32633)


BURNT = np.zeros((8, 10), dtype=int)
BURNT[:2, :5], BURNT[4:, 5:] = 1, 2


@pytest.mark.parametrize(
    ("name", "driver"),
    [("fields.gpkg", "GPKG"), ("fields.shp", "ESRI Shapefile"), ("fields.geojson", "GeoJSON")],
)
@pytest.mark.parametrize("epsg", [32633, 4326])
def test_polygons_are_burnt(tmp_path: Path, scene, name, driver, epsg) -> None:
    table = features(kind=["soil", "water"], code=[1, 2]).to_crs(epsg)
    table.to_file(tmp_path / name, driver=driver)
    by_name = hr.open_labels(tmp_path / name, like=scene, attribute="kind")
    np.testing.assert_array_equal(by_name.values, BURNT)
    assert schema.class_table(by_name).names == ("soil", "water")
    assert by_name.dtype == np.uint8
    by_code = hr.open_labels(tmp_path / name, like=scene, attribute="code")
    np.testing.assert_array_equal(by_code.values, BURNT)
    assert schema.class_table(by_code).names == ("class 1", "class 2")


def test_points_count_for_their_pixel(tmp_path: Path, scene) -> None:
    points = [shapely.Point(UTM.c + 29, UTM.f - 1), shapely.Point(UTM.c + 271, UTM.f - 239)]
    table = geopandas.GeoDataFrame({"code": [4, 9]}, geometry=points, crs=32633)
    table.to_file(tmp_path / "points.gpkg")
    labels = hr.open_labels(
        tmp_path / "points.gpkg", like=scene, attribute="code", names={4: "oak", 9: "elm"}
    )
    assert labels.values[0, 0] == 4
    assert labels.values[7, 9] == 9
    assert np.count_nonzero(labels) == 2
    assert schema.class_table(labels).names == ("oak", "elm")


def test_a_rotated_scene_keeps_its_features(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "scene.tif", random_cube(shape=(2, 8, 10)), transform=ROTATED)
    scene = hr.open_scene(path)
    a, b, c, d, e, f = ROTATED[:6]
    centre = shapely.Point(c + a * 6.5 + b * 2.5, f + d * 6.5 + e * 2.5)
    geopandas.GeoDataFrame({"code": [1]}, geometry=[centre], crs=32633).to_file(tmp_path / "p.gpkg")
    labels = hr.open_labels(tmp_path / "p.gpkg", like=scene, attribute="code")
    assert np.argwhere(labels.values).tolist() == [[2, 6]]
    crop = hr.open_labels(tmp_path / "p.gpkg", like=scene[:, 2:, 4:], attribute="code")
    assert np.argwhere(crop.values).tolist() == [[0, 2]]


def test_names_number_the_text_classes(tmp_path: Path, scene) -> None:
    features(kind=["soil", "water"]).to_file(tmp_path / "f.gpkg")
    labels = hr.open_labels(
        tmp_path / "f.gpkg", like=scene, attribute="kind", names=["water", "soil"]
    )
    np.testing.assert_array_equal(labels.values, np.where(BURNT, 3 - BURNT, 0))
    with pytest.raises(FileError, match="has the classes soil, which names does not list"):
        hr.open_labels(tmp_path / "f.gpkg", like=scene, attribute="kind", names=["water", "ice"])


def test_what_is_lost_is_noted(tmp_path: Path, scene) -> None:
    table = features(code=[1, 2])
    tiny = shapely.box(UTM.c + 1, UTM.f - 2, UTM.c + 2, UTM.f - 1)
    over = shapely.box(UTM.c, UTM.f - 60, UTM.c + 60, UTM.f)
    more = geopandas.GeoDataFrame({"code": [3, 2, None]}, geometry=[tiny, over, over], crs=32633)
    table = geopandas.pd.concat([table, more]).astype({"code": "Int64"})
    table.to_file(tmp_path / "f.gpkg")
    labels = hr.open_labels(tmp_path / "f.gpkg", like=scene, attribute="code")
    assert (labels.values[:2, :2] == 2).all()
    noted = " ".join(labels.guesses)
    assert "1 features without a value of 'code' were left out." in noted
    assert "4 pixels lie in features of several classes" in noted
    assert "The features of class 3 have no pixel centre" in noted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "name the attribute with their class: attribute=NAME, one of kind, code"),
        (
            {"attribute": "knid"},
            r"has no attribute 'knid'. It has: kind, code. Did you mean 'kind'",
        ),
        ({"attribute": "kind", "variable": "roads"}, "has no layer 'roads'. It has: f"),
    ],
)
def test_features_need_their_attribute(tmp_path: Path, scene, options, message) -> None:
    features(kind=["a", "b"], code=[1, 2]).to_file(tmp_path / "f.gpkg")
    with pytest.raises((FileError, InputError), match=message):
        hr.open_labels(tmp_path / "f.gpkg", like=scene, **options)


def test_features_need_a_scene_they_meet(tmp_path: Path, scene) -> None:
    features(code=[1, 2]).to_file(tmp_path / "f.gpkg")
    with pytest.raises(InputError, match="Pass like=scene"):
        hr.open_labels(tmp_path / "f.gpkg", attribute="code")
    far = scene.assign_coords(x=scene.x + 1e5)
    with pytest.raises(InputError, match=r"No feature of .* meets a pixel of the scene"):
        hr.open_labels(tmp_path / "f.gpkg", like=far, attribute="code")
    np.save(tmp_path / "scene.npy", np.ones((8, 10, 30)))
    with pytest.raises(InputError, match="without a place on a map"):
        hr.open_labels(
            tmp_path / "f.gpkg", like=hr.open_scene(tmp_path / "scene.npy"), attribute="code"
        )


def test_layers_must_be_chosen(tmp_path: Path, scene) -> None:
    features(code=[1, 2]).to_file(tmp_path / "f.gpkg", layer="fields")
    features(code=[2, 1]).to_file(tmp_path / "f.gpkg", layer="trees")
    with pytest.raises(FileError, match="2 layers with geometries: fields, trees"):
        hr.open_labels(tmp_path / "f.gpkg", like=scene, attribute="code")
    labels = hr.open_labels(tmp_path / "f.gpkg", like=scene, attribute="code", variable="fields")
    np.testing.assert_array_equal(labels.values, BURNT)


def test_a_broken_vector_file(tmp_path: Path, scene) -> None:
    (tmp_path / "f.geojson").write_text("no features here")
    with pytest.raises(FileError, match="cannot be read"):
        hr.open_labels(tmp_path / "f.geojson", like=scene, attribute="code")
