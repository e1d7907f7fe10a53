"""Polygons and points burnt onto a scene, with classes as people write them."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import geopandas
import numpy as np
import pytest
import shapely
from rasterio.warp import transform as transform_coordinates

import hsreject as hr
from hsreject import schema
from hsreject.errors import FileError, HsrejectError, InputError, LostFeatureWarning
from tests.io.writers import UTM, guesses, random_cube, write_with_gdal
from tests.io.written_maps import ROTATED


@pytest.fixture
def scene(tmp_path: Path):
    return hr.open_scene(write_with_gdal(tmp_path / "scene.tif", random_cube(shape=(2, 8, 10))))


def features(**columns) -> geopandas.GeoDataFrame:
    """Two boxes of whole pixels: rows 0 to 1 of columns 0 to 4, rows 4 to 7 of columns 5 to 9."""
    x, y = UTM.c, UTM.f
    boxes = [shapely.box(x, y - 60, x + 150, y), shapely.box(x + 150, y - 240, x + 300, y - 120)]
    return geopandas.GeoDataFrame(columns, geometry=boxes, crs=32633)


CENTRES = [shapely.Point(UTM.c + 15 + 30 * column, UTM.f - 45) for column in range(3)]


def points(folder: Path, kinds: list, *, epsg: int = 32633, places: list = CENTRES) -> Path:
    """Write points whose attribute `kind` is given: in row 1, columns 0 to 2, unless told."""
    frame = geopandas.GeoDataFrame({"kind": kinds}, geometry=places, crs=epsg)
    frame.to_file(folder / "points.gpkg")
    return folder / "points.gpkg"


BURNT = np.zeros((8, 10), dtype=int)
BURNT[:2, :5], BURNT[4:, 5:] = 1, 2


@pytest.mark.parametrize(
    ("name", "driver"),
    [("fields.gpkg", "GPKG"), ("fields.shp", "ESRI Shapefile"), ("fields.geojson", "GeoJSON")],
)
def test_polygons_are_burnt(tmp_path: Path, scene, name, driver) -> None:
    for epsg in (32633, 4326):
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
    places = [shapely.Point(UTM.c + 29, UTM.f - 1), shapely.Point(UTM.c + 271, UTM.f - 239)]
    path = points(tmp_path, [4, 9], places=places)
    labels = hr.open_labels(path, like=scene, attribute="kind", names={4: "oak", 9: "elm"})
    assert labels.values[0, 0] == 4
    assert labels.values[7, 9] == 9
    assert np.count_nonzero(labels) == 2
    assert schema.class_table(labels).names == ("oak", "elm")


def test_a_rotated_scene_keeps_its_features(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "scene.tif", random_cube(shape=(2, 8, 10)), transform=ROTATED)
    scene = hr.open_scene(path)
    a, b, c, d, e, f = ROTATED[:6]
    centre = shapely.Point(c + a * 6.5 + b * 2.5, f + d * 6.5 + e * 2.5)
    path = points(tmp_path, [1], places=[centre])
    labels = hr.open_labels(path, like=scene, attribute="kind")
    assert np.argwhere(labels.values).tolist() == [[2, 6]]
    crop = hr.open_labels(path, like=scene[:, 2:, 4:], attribute="kind")
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
    more = geopandas.GeoDataFrame({"code": [3, 1, None]}, geometry=[tiny, over, over], crs=32633)
    table = geopandas.pd.concat([table, more]).astype({"code": "Int64"})
    table.to_file(tmp_path / "f.gpkg")
    with pytest.warns(LostFeatureWarning, match="1 of 4 features .* number 3 of class 3"):
        labels = hr.open_labels(tmp_path / "f.gpkg", like=scene, attribute="code")
    assert (labels.values[:2, :2] == 1).all()
    assert "1 features without a value of 'code' were left out." in guesses(labels)
    assert "Nothing is left of class 3" in guesses(labels)


def test_lost_features_are_counted_and_named(tmp_path: Path, scene) -> None:
    """A feature under others is not lost; those between pixel centres and off the scene are."""
    x, y = UTM.c, UTM.f
    places = [
        shapely.box(x, y - 60, x + 60, y),
        shapely.box(x, y - 90, x + 90, y),  # hides the first
        shapely.box(x + 1, y - 2, x + 2, y - 1),
        shapely.Point(x - 15, y - 15),
        shapely.Point(x + 1e5, y),
    ]
    path = points(tmp_path, ["b", "b", "c", "d", "b"], places=places)
    with pytest.warns(LostFeatureWarning) as caught:
        labels = hr.open_labels(path, like=scene, attribute="kind")
    (told,) = (str(w.message) for w in caught if w.category is LostFeatureWarning)
    assert told in guesses(labels)
    for said in (
        "3 of 5 features of points.gpkg",
        "number 3 of class c, 4 of class d, 5 of class b",
        "Nothing is left of class c, d.",
    ):
        assert said in told
    assert labels.values[:3, :3].tolist() == [[1] * 3] * 3
    assert np.count_nonzero(labels) == 9


def test_a_global_layer_on_a_utm_scene(tmp_path: Path, scene) -> None:
    """Countries reach the poles and the date line, which have no place in UTM."""
    x, y = UTM.c, UTM.f
    far = shapely.points([(0, 90), (180, -90), (-180, 90), (-75, 10)])
    here = geopandas.GeoSeries([shapely.box(x, y - 60, x + 150, y)], crs=32633).to_crs(4326)[0]
    land = shapely.box(-180, -90, 180, 90) - here
    table = geopandas.GeoDataFrame(
        {"kind": ["land", "here", *["far"] * 4]}, geometry=[land, here, *far], crs=4326
    )
    table.to_file(tmp_path / "world.geojson")
    with pytest.warns(LostFeatureWarning, match="4 of 6 .* Nothing is left of class far"):
        labels = hr.open_labels(tmp_path / "world.geojson", like=scene, attribute="kind")
    expected = np.full((8, 10), 3)
    expected[:2, :5] = 2
    np.testing.assert_array_equal(labels.values, expected)


def test_features_need_their_attribute(tmp_path: Path, scene) -> None:
    features(kind=["a", "b"], code=[1, 2]).to_file(tmp_path / "f.gpkg")
    for options, message in (
        ({}, "attribute=NAME, one of kind, code"),
        ({"attribute": "knid"}, "'knid'.* Did you mean 'kind'"),
        ({"attribute": "kind", "variable": "roads"}, "f. Choose.*roads"),
    ):
        with pytest.raises((FileError, InputError), match=message):
            hr.open_labels(tmp_path / "f.gpkg", like=scene, **options)


def test_features_need_a_scene_they_meet(tmp_path: Path, scene) -> None:
    features(code=[1, 2]).to_file(tmp_path / "f.gpkg")
    nowhere = scene.drop_vars(["x", "y", "spatial_ref"])
    for like, message in (
        (None, "Pass like=scene"),
        (scene.assign_coords(x=scene.x + 1e5), "do not overlap the scene"),
        (nowhere, "without a place on a map"),
    ):
        with pytest.raises(InputError, match=message):
            hr.open_labels(tmp_path / "f.gpkg", like=like, attribute="code")


def test_layers_must_be_chosen(tmp_path: Path, scene) -> None:
    features(code=[1, 2]).to_file(tmp_path / "f.gpkg", layer="fields")
    features(code=[2, 1]).to_file(tmp_path / "f.gpkg", layer="trees")
    with pytest.raises(FileError, match="2 layers with geometries: fields, trees"):
        hr.open_labels(tmp_path / "f.gpkg", like=scene, attribute="code")
    labels = hr.open_labels(tmp_path / "f.gpkg", like=scene, attribute="code", variable="fields")
    np.testing.assert_array_equal(labels.values, BURNT)


def test_a_broken_vector_file(tmp_path: Path, scene) -> None:
    (tmp_path / "f.geojson").write_text("no features here")
    with pytest.raises(FileError, match="damaged, or not"):
        hr.open_labels(tmp_path / "f.geojson", like=scene, attribute="code")


def test_lists_are_not_classes(tmp_path: Path, scene) -> None:
    point = {"type": "Point", "coordinates": [13.0, 52.4]}
    features = [
        {"type": "Feature", "properties": {"kind": kind}, "geometry": point}
        for kind in ([1, 2], [3])
    ]
    path = tmp_path / "f.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    with pytest.raises(FileError, match="'kind' holds lists"):
        hr.open_labels(path, like=scene, attribute="kind")


@pytest.mark.parametrize(
    ("kinds", "names", "values", "told"),
    [
        (["2", "10", "1"], None, [2, 10, 1], "written as text"),
        (["2", "10", "2"], ["10", "2"], [2, 1, 2], ""),
        (["soil", " ", "water"], None, [1, 0, 2], "1 features without a value of 'kind'"),
        ([0, 5, 5], None, [0, 5, 5], "Features of class 0 give no reference."),
    ],
)
def test_classes_as_people_write_them(tmp_path: Path, scene, kinds, names, values, told) -> None:
    path = points(tmp_path, kinds)
    labels = hr.open_labels(path, like=scene, attribute="kind", names=names)
    assert labels.values[1, :3].tolist() == values
    assert np.count_nonzero(labels) == np.count_nonzero(values)
    assert told in guesses(labels)


@pytest.mark.parametrize(("kinds", "count"), [([None] * 3, 3), ([], 0)])
def test_a_layer_without_classes(tmp_path: Path, scene, kinds, count) -> None:
    path = points(tmp_path, kinds, places=CENTRES[: len(kinds)])
    with pytest.raises(HsrejectError, match=f"{count} features"):
        hr.open_labels(path, like=scene, attribute="kind")


def test_coordinates_of_another_system_than_stated(tmp_path: Path, scene) -> None:
    """GeoJSON in metres is read as degrees by everybody; the reader says what is wrong."""
    path = points(tmp_path, [1, 2, 3], epsg=4326)
    with pytest.raises(HsrejectError, match="not in EPSG:4326"):
        hr.open_labels(path, like=scene, attribute="kind")


def test_pixels_remember_their_polygon_and_points_are_their_own(tmp_path: Path, scene) -> None:
    x, y = UTM.c, UTM.f
    apart = shapely.MultiPolygon(
        [shapely.box(x, y - 30, x + 30, y), shapely.box(x + 240, y - 30, x + 300, y)]
    )
    places = [
        apart,
        shapely.box(x, y - 240, x + 60, y - 180),
        shapely.Point(x + 135, y - 135),
        shapely.Point(x + 165, y - 135),
    ]
    labels = hr.open_labels(
        points(tmp_path, ["a", "a", "b", "b"], places=places), like=scene, attribute="kind"
    )
    assert labels.polygon.dtype == np.int32
    np.testing.assert_array_equal(labels.polygon > 0, labels > 0)
    sizes = np.bincount(labels.polygon.values.ravel())[1:]
    assert sorted(sizes[sizes > 0]) == [1, 1, 1, 2, 4]
    hr.write_map(labels, tmp_path / "labels.tif")
    again = hr.open_labels(tmp_path / "labels.tif", like=scene)
    np.testing.assert_array_equal(again.values, labels.values)


def test_overlapping_features_of_different_classes_are_refused(tmp_path: Path, scene) -> None:
    x, y = UTM.c, UTM.f
    places = [shapely.box(x, y - 60, x + 60, y), shapely.box(x + 30, y - 60, x + 90, y)]
    with pytest.raises(InputError, match=r"overlap.*number 1.*number 2.*2 pixels"):
        hr.open_labels(points(tmp_path, ["a", "b"], places=places), like=scene, attribute="kind")


@pytest.mark.parametrize("names", [("Lon", "Lat"), ("x", "y")])
def test_a_table_of_points_is_labels(tmp_path: Path, scene, names) -> None:
    x, y = np.array([UTM.c + 15, UTM.c + 285]), np.array([UTM.f - 15, UTM.f - 225])
    if names[0] == "Lon":
        x, y = transform_coordinates("EPSG:32633", "EPSG:4326", x, y)
    rows = [f"{float(x[i])!r};{float(y[i])!r};{kind}" for i, kind in enumerate(("soil", "wood"))]
    path = tmp_path / "points.csv"
    path.write_text("\n".join([";".join((*names, "kind")), *rows]))
    labels = hr.open_labels(path, like=scene, attribute="kind")
    assert labels.values[0, 0] == 1
    assert labels.values[7, 9] == 2
    assert np.count_nonzero(labels) == 2
    path.write_text("place,kind\nhere,soil")
    with pytest.raises(FileError, match="longitude"):
        hr.open_labels(path, like=scene, attribute="kind")


def test_a_view_is_read_unless_it_has_no_end(tmp_path: Path, scene) -> None:
    path = tmp_path / "fields.gpkg"
    features(kind=["soil", "water"]).to_file(path, layer="fields")
    views = {
        "first": "SELECT * FROM fields WHERE fid = 1",
        "endless": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS fid, geom, kind FROM n, fields",
    }
    with closing(sqlite3.connect(path)) as file, file:
        for name, rows in views.items():
            file.execute(f"CREATE VIEW {name} AS {rows}")
            listed = (
                "(table_name, data_type, identifier, srs_id) VALUES (?1, 'features', ?1, 32633)"
            )
            file.execute(f"INSERT INTO gpkg_contents {listed}", [name])
            file.execute(
                "INSERT INTO gpkg_geometry_columns VALUES (?, 'geom', 'POLYGON', 32633, 0, 0)",
                [name],
            )
    labels = hr.open_labels(path, like=scene, attribute="kind", variable="first")
    np.testing.assert_array_equal(labels.values, np.where(BURNT == 1, 1, 0))
    with pytest.raises(FileError, match=r"'endless'.*no end"):
        hr.open_labels(path, like=scene, attribute="kind", variable="endless")
