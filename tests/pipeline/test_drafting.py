"""What `hsreject init` makes of files: a configuration that runs, whatever they leave open."""

import geopandas as gpd
import numpy as np
import pytest
import shapely
from scipy.io import savemat

import hsreject as hr
from hsreject.errors import InputError
from hsreject.pipeline.config import read_document
from hsreject.pipeline.drafting import draft_configuration
from hsreject.pipeline.parts import Files
from hsreject.pipeline.plan import make_plan


@pytest.fixture(scope="module")
def scene():
    return hr.synthetic_scene(rows=40, columns=36, n_classes=3, n_bands=10)


def drafted_text(scene, labels, *, align=None, sampling=None, **options):
    """Return the draft for files that are read with options."""
    files = Files(str(scene), str(labels), **options)
    return draft_configuration(files, align=align, sampling=sampling)


def drafted(tmp_path, *files, **options):
    """Return the plan and the scene table of a draft, which both can be read back."""
    draft = drafted_text(*files, **options)
    (tmp_path / "my.toml").write_text(draft.text, encoding="utf-8")
    document = read_document(tmp_path / "my.toml")
    return draft, make_plan(document), document


def test_a_georeferenced_raster_and_its_labels(tmp_path, scene) -> None:
    cube, labels = scene
    cube.rio.to_raster(tmp_path / "scene.tif")
    hr.write_map(labels, tmp_path / "labels.tif")
    draft, plan, document = drafted(tmp_path, tmp_path / "scene.tif", tmp_path / "labels.tif")
    assert set(document["scene"]) == {"name", "path", "labels"}
    assert list(plan.rejectors) == ["sequential"]
    assert isinstance(plan.model, hr.AutoClassifier)
    assert plan.goal == hr.Goal(accuracy=0.95)
    assert "EPSG:32633" in draft.text
    table = hr.schema.class_table(labels)
    for value, name in zip(table.values, table.names, strict=True):
        count = int(((labels == value) & cube.notnull().all("band")).sum())
        assert any(
            line.split()[1:] == [str(value), *name.split(), str(count)]
            for line in draft.text.splitlines()
        )
    found, reference = plan.load()
    np.testing.assert_array_equal(found.values, cube.values)
    np.testing.assert_array_equal(reference.values, labels.values)


def test_labels_on_another_grid_are_aligned(tmp_path, scene) -> None:
    cube, labels = scene
    cube.rio.to_raster(tmp_path / "scene.tif")
    hr.write_map(labels[4:30, 2:30], tmp_path / "labels.tif")
    draft, plan, document = drafted(tmp_path, tmp_path / "scene.tif", tmp_path / "labels.tif")
    assert document["scene"]["align"] == "nearest"
    assert any("another grid" in note for note in draft.notes)
    np.testing.assert_array_equal(plan.load()[1][4:30, 2:30], labels[4:30, 2:30])


def test_of_several_arrays_in_a_file_one_is_named(tmp_path, scene) -> None:
    cube, labels = scene
    values = np.nan_to_num(cube.values, nan=0.1)
    arrays = {"before": values[:4], "cube": values, "gt": labels.values, "kernel": np.eye(5)}
    savemat(tmp_path / "all.mat", arrays)  # bands first, which MATLAB scenes seldom are
    files = [tmp_path / "all.mat"] * 2
    with pytest.raises(hr.HsrejectError, match=r"before.*cube.*variable="):
        drafted_text(*files)
    names = {"variable": "cube", "labels_variable": "gt", "band_axis": 0}
    _, plan, document = drafted(tmp_path, *files, **names)
    assert {name: document["scene"][name] for name in names} == names
    found, reference = plan.load()
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(reference.values, labels.values)


def polygons(labels, **columns) -> gpd.GeoDataFrame:
    """Return one square for each of some labelled pixels, with their class as text."""
    rows, cols = np.nonzero(labels.values)
    rows, cols = rows[::7], cols[::7]
    x, y = labels.x.values[cols], labels.y.values[rows]
    half = abs(labels.x.values[1] - labels.x.values[0]) / 2
    squares = shapely.box(x - half, y - half, x + half, y + half)
    names = np.array(["", "corn", "soil", "water"])[labels.values[rows, cols]]
    frame = {"id": np.arange(len(x)), "area": np.linspace(0, 1, len(x)), "landcover": names}
    return gpd.GeoDataFrame(
        frame | {name: values[: len(x)] for name, values in columns.items()},
        geometry=squares,
        crs=labels.rio.crs,
    )


def test_the_attribute_with_the_class_is_found_and_named(tmp_path, scene) -> None:
    cube, labels = scene
    cube.rio.to_raster(tmp_path / "scene.tif")
    surveyor = np.array(["ann", "bob"] * 500)
    polygons(labels, surveyor=surveyor).to_file(tmp_path / "fields.gpkg")
    files = tmp_path / "scene.tif", tmp_path / "fields.gpkg"
    draft, plan, document = drafted(tmp_path, *files)
    assert document["scene"]["attribute"] == "landcover"
    assert any("landcover" in note and "surveyor" in note for note in draft.notes)
    assert not any("'id'" in note or "area" in note for note in draft.notes)
    assert hr.schema.class_table(plan.load()[1]).names == ("corn", "soil", "water")
    assert drafted(tmp_path, *files, attribute="surveyor")[2]["scene"]["attribute"] == "surveyor"
    polygons(labels).drop(columns="landcover").to_file(tmp_path / "bare.gpkg")
    with pytest.raises(InputError, match=r"No attribute.*id, area"):
        drafted_text(files[0], tmp_path / "bare.gpkg")


@pytest.mark.parametrize(("size", "n_per_class"), [(30, 10), (600, 25), (4000, 50)])
def test_the_training_pixels_suit_the_classes(tmp_path, size, n_per_class) -> None:
    labels = np.zeros((400, 150), dtype=np.uint8)
    some = np.random.default_rng(1).permutation(labels.size)[: 3 * size + 13]
    labels.flat[some] = [*np.repeat([1, 2, 3], size), *[4] * 12, 5]
    np.save(tmp_path / "labels.npy", labels)
    spectra = np.random.default_rng(0).uniform(size=(400, 150, 4)) + np.arange(4)
    np.save(tmp_path / "scene.npy", spectra)
    files = tmp_path / "scene.npy", tmp_path / "labels.npy"
    draft, _, document = drafted(tmp_path, *files)
    assert document["sampling"] == {"name": "per_class", "n_per_class": n_per_class}
    assert "give half: class 4" in draft.text
    assert "cannot be learned: class 5" in draft.text


def test_names_cannot_break_out_of_their_comment(tmp_path, scene) -> None:
    cube, labels = scene
    cube.rio.to_raster(tmp_path / "scene.tif")
    names = ["corn\nfraction = 0.9", 'so"il', "wa\rter"]
    named = hr.schema.attach_classes(labels, hr.ClassTable.from_names(names))
    hr.write_map(named, tmp_path / "labels.tif")
    _, plan, _ = drafted(tmp_path, tmp_path / "scene.tif", tmp_path / "labels.tif")
    assert plan.goal == hr.Goal(accuracy=0.95)


def test_what_cannot_be_a_scene_with_labels_is_refused(tmp_path, scene) -> None:
    cube, labels = scene
    cube.rio.to_raster(tmp_path / "scene.tif")
    hr.write_map(labels, tmp_path / "labels.tif")
    with pytest.raises(InputError, match="scene first"):
        drafted_text(tmp_path / "labels.tif", tmp_path / "scene.tif")
    np.save(tmp_path / "one.npy", (labels.values == 1).astype(np.uint8))
    with pytest.raises(InputError, match="fewer than two classes"):
        drafted_text(tmp_path / "scene.tif", tmp_path / "one.npy")
    np.save(tmp_path / "small.npy", labels.values[:9])
    with pytest.raises(InputError, match="do not fit"):
        drafted_text(tmp_path / "scene.tif", tmp_path / "small.npy")


def squares(labels, n_polygons: int, **columns) -> gpd.GeoDataFrame:
    """Return as many squares of 3 x 3 pixels in a row for each of two classes."""
    step = abs(float(labels.x[1] - labels.x[0]))
    west, north = float(labels.x[0]) - step / 2, float(labels.y[0]) + step / 2
    boxes = [
        shapely.box(x, y - 3 * step, x + 3 * step, y)
        for y in (north, north - 20 * step)
        for x in west + 6 * step * np.arange(n_polygons)
    ]
    return gpd.GeoDataFrame(columns, geometry=boxes, crs=labels.rio.crs)


@pytest.mark.parametrize(("n_polygons", "fraction"), [(3, 1), (5, 0.5)])
def test_polygons_are_kept_whole_and_names_come_with_their_codes(
    tmp_path, scene, n_polygons, fraction
) -> None:
    cube, labels = scene
    cube.rio.to_raster(tmp_path / "scene.tif")
    kinds, codes = ["corn", "soil"], [7, 4]
    table = squares(
        labels, n_polygons, code=np.repeat(codes, n_polygons), kind=np.repeat(kinds, n_polygons)
    )
    table.to_file(tmp_path / "fields.gpkg")
    draft, plan, document = drafted(tmp_path, tmp_path / "scene.tif", tmp_path / "fields.gpkg")
    assert document["sampling"] == {"name": "polygons", "fraction": fraction}
    assert document["scene"]["attribute"] == "kind"
    assert document["scene"]["names"] == {"4": "soil", "7": "corn"}
    assert any(f"{2 * n_polygons} polygons" in note for note in draft.notes)
    reference = plan.load()[1]
    assert hr.schema.class_table(reference).name_of(7) == "corn"
    _, test = plan.sampling(reference, seed=0)
    assert ((test > 0).any() == (fraction < 1)).item()
    *_, asked = drafted(
        tmp_path, tmp_path / "scene.tif", tmp_path / "fields.gpkg", sampling="blocks"
    )
    assert asked["sampling"]["name"] == "blocks"


def test_a_map_of_the_whole_scene_is_sampled_pixel_by_pixel(tmp_path) -> None:
    np.save(tmp_path / "scene.npy", np.random.default_rng(0).uniform(size=(40, 40, 4)))
    np.save(tmp_path / "labels.npy", np.repeat([1, 2], 800).reshape(40, 40))
    _, _, document = drafted(tmp_path, tmp_path / "scene.npy", tmp_path / "labels.npy")
    assert document["sampling"]["name"] == "per_class"


def test_parts_that_are_mapped_wall_to_wall_are_sampled_by_blocks(tmp_path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "scene.npy", rng.uniform(size=(60, 60, 4)))
    labels = np.zeros((60, 60), dtype=int)
    for row, column in ((0, 0), (0, 36), (36, 0)):
        window = rng.integers(1, 4, size=(6, 6)).repeat(4, axis=0).repeat(4, axis=1)
        labels[row : row + 24, column : column + 24] = window
    np.save(tmp_path / "labels.npy", labels)
    draft, plan, document = drafted(tmp_path, tmp_path / "scene.npy", tmp_path / "labels.npy")
    assert document["sampling"]["name"] == "blocks"
    assert "map of parts" in " ".join(draft.notes)
    train, test = plan.sampling(plan.load()[1], seed=0)
    assert set(np.unique(train)) == set(np.unique(test)) == {0, 1, 2, 3}


def test_what_has_no_data_is_said(tmp_path, scene) -> None:
    values = np.random.default_rng(0).uniform(size=(40, 40, 4))
    values[:10] = 0
    labels = np.random.default_rng(1).integers(0, 4, size=(40, 40), dtype=np.uint8)
    np.save(tmp_path / "scene.npy", values)
    np.save(tmp_path / "labels.npy", labels)
    files = tmp_path / "scene.npy", tmp_path / "labels.npy"
    draft, _, _ = drafted(tmp_path, *files)
    assert any("400 of 1600 pixels are zero" in note for note in draft.notes)
    draft, plan, document = drafted(tmp_path, *files, nodata=0)
    assert document["scene"]["nodata"] == 0
    assert any("labelled pixels have no data" in note for note in draft.notes)
    assert np.isnan(plan.load()[0].values[:, :10]).all()
    labels[10:][labels[10:] == 3] = 0
    np.save(tmp_path / "labels.npy", labels)
    with pytest.raises(InputError, match=r"no data.*class 3"):
        drafted_text(*files, nodata=0)
