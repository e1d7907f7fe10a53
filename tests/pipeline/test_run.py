"""Configurations end to end, on scenes small enough to solve in a second."""

import importlib
import json
import re
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
import rasterio
import xarray as xr
from dask.base import tokenize
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import hsreject as hr
from hsreject.errors import FileError, HsrejectWarning
from hsreject.mapping.map_inputs import open_inputs
from hsreject.schema import REJECTED, class_table, nodata_label
from tests.report.browser import Browser, driver

__all__ = ["driver"]  # a fixture

SMALL = {
    "title": "Small",
    "seed": 3,
    "fraction": 0.2,
    "scene": {"name": "synthetic", "rows": 40, "columns": 36, "n_classes": 3, "n_bands": 12},
    "features": [{"name": "pca", "n_components": 4}],
    "classifier": {"name": "smlr"},
    "context": {"prior": "vector_tv", "weight": 1.0},
    "rejectors": ["pixelwise", "sequential", {"name": "joint", "n_points": 4}],
    "baselines": ["coordinates"],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "out"
    return hr.run(SMALL, out=folder), folder


def table(result, name):
    """Return a group of a result by itself."""
    return result[name].to_dataset(inherit=False)


def kept_stages(folder, pattern="*"):
    paths = (folder / "stages").rglob(pattern)
    return {path: path.stat().st_mtime_ns for path in paths if path.is_file()}


def stop_before_writing(stage, done, total):
    if stage == "writing":
        raise KeyboardInterrupt


def run_stages(config, out, **options) -> None:
    """Run the stages alone, as someone does who presses Ctrl-C before the pictures are drawn."""
    with pytest.raises(KeyboardInterrupt):
        hr.run(config, out=out, progress=stop_before_writing, **options)


def test_the_dataset_holds_every_stage(finished) -> None:
    result, folder = finished
    assert result["probability"].dims == ("category", "y", "x")
    assert result["label_with_rejection"].dims == ("rejector", "y", "x")
    assert list(result["rejector"].values) == ["pixelwise", "sequential", "joint"]
    assert list(result["summary/system"].values)[-1] == "coordinates"
    assert result.attrs["seed"] == 3
    assert "vector_tv" in result.attrs["configuration"]
    assert str(folder) not in str(result.attrs)


def test_novelty_in_a_run_is_that_of_the_parts() -> None:
    rejectors = ["pixelwise", "sequential", {"name": "joint", "n_points": 4}]
    result = hr.run({**SMALL, "rejectors": rejectors})
    cube, labels = hr.synthetic_scene(rows=40, columns=36, n_classes=3, n_bands=12)
    training, _ = hr.sample_per_class(labels, 10, seed=3)
    p_value = hr.Novelty().fit_p_value(cube, training)
    np.testing.assert_allclose(result.p_value, p_value, rtol=1e-5)
    maps = result.to_dataset()[["probability", "hidden_field"]].assign(p_value=p_value)
    wanted = hr.SequentialRejector().reject(maps, fraction=0.2)
    found = result.to_dataset().sel(rejector="sequential")
    np.testing.assert_allclose(found.confidence, wanted.confidence, atol=1e-5)
    np.testing.assert_array_equal(found.rejected, wanted.rejected)
    np.testing.assert_array_equal(found.unknown, p_value < 0.025)
    deaf = [{"name": "sequential", "novelty": False}]
    plain = hr.run({**SMALL, "rejectors": deaf}).to_dataset().sel(rejector="sequential")
    np.testing.assert_array_equal(found.label, plain.label)
    assert "unknown" not in plain


def test_each_rejector_rejects_what_was_asked_and_never_nodata(finished) -> None:
    result, _ = finished
    labels = result["label_with_rejection"]
    nodata = labels.values == nodata_label(labels.dtype)
    cube, _ = hr.synthetic_scene(rows=40, columns=36, n_classes=3, n_bands=12)
    np.testing.assert_array_equal(nodata, np.isnan(cube.values).any(axis=0)[None].repeat(3, 0))
    assert not (result["rejected"].values & nodata).any()
    np.testing.assert_array_equal(labels.values == REJECTED, result["rejected"].values)
    for name in ("pixelwise", "sequential"):
        rejected = result["rejected"].sel(rejector=name).values
        unknown = result["unknown"].sel(rejector=name).values
        assert rejected[unknown].all()  # beside the share that was asked for
        n_pixels = (~nodata[0] & ~unknown).sum()
        assert rejected[~unknown].sum() / n_pixels == pytest.approx(0.2, abs=1.5 / n_pixels)


def test_the_summary_agrees_with_the_maps(finished) -> None:
    result, _ = finished
    test = result["test"].values
    label = result["label"].sel(rejector="sequential").values
    used = (test > 0) & (label != nodata_label(label.dtype))
    accuracy = (label[used] == test[used]).mean()
    row = table(result, "summary").sel(system="sequential").isel(seed=0)
    assert float(row["overall_accuracy"]) == pytest.approx(accuracy)
    points = table(result, "points")
    points = points.isel(operating_point=points["system_of_point"].values == "sequential")
    assert float(row["largest_quality"]) == float(points["classification_quality"].max())


def rejected_map(name: str) -> str:
    """Return the file of the map of a rejector; sequential rejection is delivered."""
    return "map.tif" if name == "sequential" else f"label_with_rejection_{name}.tif"


def test_no_map_is_written_twice(finished) -> None:
    _, folder = finished
    maps = {}
    for path in (folder / "maps").glob("*.tif"):
        with rasterio.open(path) as file:
            maps[path.name] = (file.count, file.read().tobytes())
    assert len(set(maps.values())) == len(maps)
    assert {"map.tif", "label_sequential.tif", "label_with_rejection_joint.tif"} <= maps.keys()


def test_flags_tell_what_is_unknown_to_those_who_certify(finished) -> None:
    result, folder = finished
    maps = result.to_dataset().sel(rejector="sequential")
    unknown = maps["unknown"].values.astype(bool)
    flag = hr.open_map(folder / "maps" / "flag.tif")
    assert unknown.any()
    np.testing.assert_array_equal(flag == 3, unknown)
    np.testing.assert_array_equal(flag == 1, maps["label_with_rejection"] % 255 > 0)
    files = (folder / "maps" / f"{name}_sequential.tif" for name in ("label", "confidence"))
    label, confidence = files
    label = open_inputs(label, None, confidence, None, None, None).label
    expected = np.where(unknown, 0, maps["label"].values)
    np.testing.assert_array_equal(label, expected)


def test_written_maps_are_those_of_the_dataset(finished) -> None:
    result, folder = finished
    for name in result["rejector"].values:
        expected = result["label_with_rejection"].sel(rejector=name)
        with rasterio.open(folder / "maps" / rejected_map(name)) as file:
            np.testing.assert_array_equal(file.read(1), expected.values)
            assert file.crs.to_epsg() == 32633
            assert file.nodata == 255
            assert file.transform == result.to_dataset().rio.transform()
    with rasterio.open(folder / "maps" / "map.tif") as file:
        np.testing.assert_array_equal(file.read(1), result["delivered/label_with_rejection"])
        assert result["delivered/label_with_rejection"].rio.crs.to_epsg() == 32633
        chosen = result["label_with_rejection"].sel(rejector="sequential")
        np.testing.assert_array_equal(file.read(1), chosen)
    names = class_table(hr.open_labels(folder / "maps" / "reference.tif")).names
    assert names == ("cover 1", "cover 2", "cover 3")


def test_a_result_on_disk_is_whole(finished) -> None:
    result, folder = finished
    again = hr.open_tree(folder / "result.nc").load()
    assert [node.path for node in again.subtree] == [node.path for node in result.subtree]
    for one, other in zip(again.subtree, result.subtree, strict=True):
        xr.testing.assert_equal(
            one.to_dataset(inherit=False).drop_vars("spatial_ref", errors="ignore"),
            other.to_dataset(inherit=False).drop_vars("spatial_ref", errors="ignore"),
        )
    alone = hr.open_dataset(folder / "result.nc")
    np.testing.assert_array_equal(alone["label"], result["label"])


def test_tables_and_pictures_are_there(finished) -> None:
    result, folder = finished
    points = pd.read_csv(folder / "operating_points.csv")
    assert len(points) == result["points"].sizes["operating_point"]
    assert set(points["system_of_point"]) == set(result["summary/system"].values)
    assert {"classes.csv", "areas.csv", "confusion.csv"} <= {path.name for path in folder.iterdir()}
    names = {path.name for path in (folder / "figures").iterdir()}
    wanted = {"false_color.png", "reference.png", "measures.png", "costs.png", "accuracy.png"}
    assert wanted | {"relative_optimality.png", "rejected_joint.png"} <= names
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png") == len(names)
    assert "vector_tv" in page
    assert 'href="explorer.html"' in page


def test_a_map_that_no_confidence_makes_has_no_confidence_classes(tmp_path) -> None:
    small = {**SMALL, "rejectors": [{"name": "joint", "n_points": 2}], "baselines": []}
    result = hr.run(small, out=tmp_path / "out")
    assert "confidence_classes" not in result
    assert "confidence_class" not in result["delivered"]
    assert not list((tmp_path / "out").rglob("confidence_classes*"))


def test_rejected_pixels_of_a_picture_are_faded_and_hatched(finished) -> None:
    result, folder = finished
    one = result.to_dataset().sel(rejector="sequential")
    dots = imread(folder / "figures" / "rejected_sequential.png")[..., :3]
    times = dots.shape[0] // one.sizes["y"]
    squares = dots.reshape(one.sizes["y"], times, one.sizes["x"], times, 3).swapaxes(1, 2)
    table = class_table(one["label"])
    colors = dict(zip(table.values, map(to_rgb, table.colors), strict=True))
    for (row, column), label in np.ndenumerate(one["label"].values):
        square = squares[row, column].reshape(-1, 3)
        if one["rejected"].values[row, column]:  # light, with lines across
            assert np.median(square.min(axis=1)) > 0.7
            assert len(np.unique(square, axis=0)) == 2
        elif label in colors:
            assert np.abs(square - colors[label]).max() < 1 / 255


def delivered(folder, name):
    """Return label, rejected and test as another program reads them from the delivered files."""
    values = {}
    for file in (f"label_{name}.tif", rejected_map(name), "test.tif"):
        with rasterio.open(folder / "maps" / file) as raster:
            values[file] = raster.read(1)
    label, kept, test = values.values()
    return label, kept == REJECTED, np.where(test == 255, 0, test)


def block_interval(right, chosen, side) -> np.ndarray:
    """Return the 95 % interval of the share of chosen pixels that are right, blocks resampled."""
    rows, columns = np.nonzero(chosen)
    blocks = rows // side * 1000 + columns // side
    values = [right[chosen][blocks == block] for block in np.unique(blocks)]
    n_right, n = np.array([(block.sum(), block.size) for block in values]).T
    drawn = np.random.default_rng(0).integers(0, len(n), (20_000, len(n)))
    return np.quantile(n_right[drawn].sum(1) / n[drawn].sum(1), [0.025, 0.975])


def test_the_page_opens_with_the_numbers_of_the_delivered_files(finished) -> None:
    result, folder = finished
    label, rejected, test = delivered(folder, "sequential")
    has_data = label != 255
    used = (test > 0) & has_data
    kept = used & ~rejected
    right, wrong = label == test, label != test
    page = (folder / "report.html").read_text(encoding="utf-8")
    top = page[: page.index("<section>")]
    for share in (
        1 - rejected[has_data].mean(),
        right[kept].mean(),
        right[used].mean(),
        (used & wrong & rejected).sum() / (used & wrong).sum(),
        float(result["judged/overall_accuracy"].sel(system="coordinates")[0]),
    ):
        assert f"{100 * share:.1f} %" in top
    assert "maps/map.tif" in top
    side = int(re.search(r"blocks of (\d+) x", top)[1])
    spans = re.findall(r"95 % interval: ([\d.]+) to ([\d.]+)", top)
    for span, chosen in zip(spans, (kept, used), strict=True):
        wanted = 100 * block_interval(right, chosen, side)
        # two bootstraps of some thousand resamples differ by a few tenths of a percent
        assert [float(end) for end in span] == pytest.approx(wanted.tolist(), abs=0.7)
    for name in ("sequential", "joint"):
        label, rejected, test = delivered(folder, name)
        kept = (test > 0) & (label != 255) & ~rejected
        row = table(result, "judged").sel(system=name).isel(seed=0)
        accuracy = (label == test)[kept].mean()
        assert float(row["nonrejected_accuracy"]) == pytest.approx(accuracy)
        ends = (row[f"nonrejected_accuracy_{end}"] for end in ("lower", "upper"))
        lower, upper = map(float, ends)
        assert lower <= accuracy <= upper


def test_the_explorer_opens_with_the_numbers_of_the_delivered_files(driver, finished) -> None:
    _, folder = finished
    browser = Browser(driver, folder / "explorer.html")
    label, rejected, test = delivered(folder, "sequential")
    with rasterio.open(folder / "maps" / "confidence_sequential.tif") as raster:
        confidence = raster.read(1)
    threshold = float(browser.text("threshold"))
    np.testing.assert_array_equal(rejected, confidence < threshold)
    used, right = (test > 0) & (label != 255), label == test
    kept = used & ~rejected
    assert browser.number("kept") == 1 - rejected[label != 255].mean()
    assert browser.number("accuracy") == right[kept].mean()
    assert browser.number("before") == right[used].mean()
    assert browser.number("refused") == rejected[used].mean()
    assert browser.number("caught") == (used & ~right & rejected).sum() / (used & ~right).sum()
    assert browser.errors() == []


def test_classes_and_confusions_on_the_page_are_those_of_the_files(finished) -> None:
    _, folder = finished
    label, rejected, test = delivered(folder, "sequential")
    page = (folder / "report.html").read_text(encoding="utf-8")
    matrix = page[page.index('class="matrix"') :]
    rows = [
        re.findall(r">([\d,]*)</td>", line) for line in matrix.splitlines() if "<tr><th" in line
    ]
    counts = [
        [int(cell.replace(",", "") or 0) for cell in row] for row in rows[1:4]
    ]  # below the headings
    used = (test > 0) & (label != 255)
    decision = np.where(rejected, 0, label)
    wanted = [
        [((test == r) & (decision == d) & used).sum() for d in (1, 2, 3, 0)] for r in (1, 2, 3)
    ]
    assert counts == wanted


def test_the_explorer_holds_every_point_of_joint_rejection_without_another_solve(
    finished, tmp_path
) -> None:
    result, folder = finished
    page = (folder / "explorer.html").read_text(encoding="utf-8")
    payload = page.partition('id="payload">')[2].partition("</script>")[0]
    systems = json.loads(payload)["systems"]
    assert [system["name"] for system in systems] == ["sequential", "pixelwise", "joint"]
    n_points = int((result["points/system_of_point"] == "joint").sum())
    assert systems[2]["labels"]["planes"] == systems[2]["points"] == n_points
    before = kept_stages(folder, "*.npz")
    hr.run(SMALL, out=folder)
    assert kept_stages(folder, "*.npz") == before


def test_stages_under_the_names_of_others_are_told_of_and_computed_again(finished) -> None:
    result, folder = finished
    (first,), (second,) = (
        (folder / "stages").glob(f"rejection-{n}-*") for n in ("joint", "pixelwise")
    )
    mine, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(mine)
    with pytest.warns(HsrejectWarning, match="another stage") as told:
        again = hr.run(SMALL, out=folder)
    assert sum("another stage" in str(one.message) for one in told) == 2
    xr.testing.assert_equal(result["label_with_rejection"], again["label_with_rejection"])


def test_a_run_goes_on_from_finished_stages_and_repairs_damaged_ones(finished) -> None:
    result, folder = finished
    (damaged,) = (folder / "stages").glob("rejection-joint-*")
    damaged.write_bytes(damaged.read_bytes()[:100])
    before = kept_stages(folder)
    again = hr.run(SMALL, out=folder)
    xr.testing.assert_equal(result["label_with_rejection"], again["label_with_rejection"])
    after = kept_stages(folder)
    assert {path for path in after if after[path] != before.get(path)} == {damaged}
    with pytest.raises(FileError, match="--overwrite"):
        hr.run(SMALL, out=folder, settings=["context.weight=2"])
    run_stages(SMALL, folder, settings=["context.weight=2"], overwrite=True)
    new = {
        path.name.partition("-")[0] for path in kept_stages(folder, "*.nc").keys() - after.keys()
    }
    assert new == {"context", "rejection"}


def test_solves_of_joint_rejection_are_kept_on_the_way(tmp_path) -> None:
    """An interrupted sweep goes on; how many workers it has does not matter."""

    def interrupt(stage: str, done: float, total: float | None) -> None:
        if stage == "joint sweep" and done >= 2.5:
            raise KeyboardInterrupt

    small = SMALL | {"rejectors": [{"name": "joint", "n_points": 4, "n_workers": 1}]}
    with pytest.raises(KeyboardInterrupt):
        hr.run(small, out=tmp_path, progress=interrupt)
    kept = kept_stages(tmp_path, "*.npz")
    assert kept
    run_stages(small, tmp_path)
    assert kept.items() < kept_stages(tmp_path, "*.npz").items()
    stages = kept_stages(tmp_path)
    run_stages(small, tmp_path, settings=["rejectors=[{name='joint',n_points=4}]"])
    assert kept_stages(tmp_path) == stages


def all_bands(values: np.ndarray) -> np.ndarray:
    return values


def one_band(values: np.ndarray) -> np.ndarray:
    return values[:, :1]


def test_functions_are_told_apart_among_finished_stages(tmp_path) -> None:
    def configured(function):
        model = make_pipeline(FunctionTransformer(function), LinearDiscriminantAnalysis())
        return {"scene": SMALL["scene"], "seed": 3, "classifier": model}

    def accuracy(function, out=None):
        return float(hr.run(configured(function), out=out)["summary/overall_accuracy"][0, 0])

    run_stages(configured(all_bands), tmp_path)
    assert accuracy(one_band, tmp_path) == accuracy(one_band) < accuracy(all_bands)
    assert not kept_stages(tmp_path, "classifier-*")  # the code of functions may be edited


CODE = """
from dataclasses import dataclass
import numpy as np
import hsreject as hr

def bands(values):
    return values{bands}

class Smooth(hr.VectorTV):
    def __init__(self, weight=1.0):
        super().__init__(weight * {factor})
"""


def stages_of_models(folder) -> set[str]:
    """Return the stages that depend on the configured model: not on place or spectra alone."""
    names = {path.name for path in kept_stages(folder)}
    return {name for name in names if "coordinates" not in name and "novelty" not in name}


def test_changed_code_is_not_taken_for_what_it_was(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for bands, factor in (("", 1), ("[:, :1]", 1), ("[:, :1]", 2)):
        (tmp_path / "edited_code.py").write_text(CODE.format(bands=bands, factor=factor))
        sys.modules.pop("edited_code", None)
        code = importlib.import_module("edited_code")
        model = make_pipeline(FunctionTransformer(code.bands), LinearDiscriminantAnalysis())
        config = {"scene": SMALL["scene"], "classifier": model, "context": {"prior": code.Smooth()}}
        run_stages(config | {"rejectors": ["sequential"]}, tmp_path / "out")
    assert stages_of_models(tmp_path / "out") == set()


def test_nothing_is_kept_of_what_has_no_key(tmp_path) -> None:
    generator = (number for number in (1, 2))
    function = FunctionTransformer(lambda values: values + 0 * (generator is None))
    model = make_pipeline(function, LinearDiscriminantAnalysis())
    run_stages({"scene": SMALL["scene"], "classifier": model}, tmp_path)
    assert stages_of_models(tmp_path) == set()


def test_what_a_scene_holds_is_part_of_the_key(tmp_path) -> None:
    cube, labels = hr.synthetic_scene(rows=40, columns=36, n_classes=3, n_bands=12)
    for scene in ((cube, labels), (cube + 1, labels), (cube, labels.where(labels != 2, 0))):
        run_stages({"classifier": "lda", "seed": 3, "scene": scene}, tmp_path)
    assert len(kept_stages(tmp_path, "classifier-*.nc")) == 3


def test_objects_stand_for_tables_and_give_the_same() -> None:
    tables = {key: SMALL[key] for key in ("scene", "features", "context", "seed", "fraction")}
    named = hr.run(tables | {"classifier": "lda", "rejectors": ["sequential"]})
    cube, labels = hr.synthetic_scene(rows=40, columns=36, n_classes=3, n_bands=12)
    context = hr.SegSALSA(hr.VectorTV(1.0))
    objects = hr.run(
        {
            "seed": 3,
            "fraction": 0.2,
            "scene": (cube, labels),
            "sampling": partial(hr.sample_per_class, n_per_class=10),
            "features": [hr.PCA(4)],
            "classifier": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
            "context": context,
            "rejectors": {"sequential": hr.SequentialRejector(context)},
        }
    )
    xr.testing.assert_equal(named["label_with_rejection"], objects["label_with_rejection"])
    xr.testing.assert_equal(named["summary/aurc"], objects["summary/aurc"])


class CountedPCA(hr.PCA):
    """A PCA that counts how often a scene passes through any copy of it."""

    n_scenes = 0

    def transform(self, cube):
        type(self).n_scenes += 1
        return super().transform(cube)


def test_features_are_made_once_for_fit_and_prediction(monkeypatch) -> None:
    monkeypatch.setattr(CountedPCA, "n_scenes", 0)
    plain = {"scene": SMALL["scene"], "features": [CountedPCA(4)], "classifier": "lda"}
    result = hr.run(plain)
    assert CountedPCA.n_scenes == 1
    cube, _ = hr.synthetic_scene(**{k: v for k, v in SMALL["scene"].items() if k != "name"})
    model = hr.SceneClassifier("lda", features=[hr.PCA(4)]).fit(cube, result["train"])
    np.testing.assert_array_equal(result["probability"], model.predict_proba(cube))


def test_folders_of_others_are_left_alone(tmp_path) -> None:
    plain = {key: SMALL[key] for key in ("scene", "features")} | {"classifier": "lda"}
    mine = {"thesis.txt": "do not lose me", "config.toml": "not = 'of a run'"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(FileError, match="--overwrite"):
            hr.run(plain, out=tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == mine
    hr.run(plain, out=tmp_path, overwrite=True)
    hr.run(plain | {"seed": 1}, out=tmp_path, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == mine["thesis.txt"]
    with pytest.raises(FileError, match="is a file"):
        hr.run(SMALL, out=tmp_path / "thesis.txt")


def test_a_second_run_into_one_folder_is_refused_before_any_work(tmp_path) -> None:
    out = tmp_path / "out"

    def again(stage, done, total) -> None:
        before = kept_stages(out)
        with pytest.raises(FileError, match="Another process"):
            hr.run(SMALL, out=out, progress=lambda *_: pytest.fail("it has begun"))
        assert kept_stages(out) == before
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hr.run(SMALL, out=out, progress=again)


@pytest.mark.parametrize("left", [[], [".partial.config.toml.x"], ["config.toml"]])
def test_a_run_killed_at_its_very_begin_can_be_started_again(left, tmp_path) -> None:
    for name in left:
        (tmp_path / name).mkdir() if name[0] == "." else (tmp_path / name).touch()
    run_stages({"scene": SMALL["scene"], "classifier": "lda"}, tmp_path)
    assert not list(tmp_path.glob(".*"))


TOO_MANY = {"sampling": {"name": "fraction", "fraction": 0.9}}


def test_bad_input_leaves_no_folder(tmp_path) -> None:
    with pytest.raises(FileError, match=r"missing\.tif"):
        hr.run(
            SMALL | {"scene": {"name": "files", "path": "missing.tif", "labels": "l.tif"}},
            out=tmp_path / "out",
        )
    with pytest.raises(hr.HsrejectError, match=r"at most 0\.5"):
        hr.run(SMALL | TOO_MANY, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_results_are_replaced_together_or_not_at_all(tmp_path) -> None:
    plain = {key: SMALL[key] for key in ("scene", "features")} | {"classifier": "lda"}
    out = tmp_path / "out"
    both = [{"name": "pixelwise"}, {"name": "pixelwise", "title": "margin", "confidence": "margin"}]
    hr.run(plain | {"rejectors": both}, out=out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(hr.HsrejectError):
        hr.run(plain | TOO_MANY, out=out)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    for left in (".partial.killed", "stages/.partial.one/.partial.inside"):
        (out / left).mkdir(parents=True)  # what a killed run was writing
    with pytest.raises(FileError, match="another configuration"):
        hr.run(plain, out=out)
    hr.run(plain, out=out, overwrite=True)
    assert not list(out.rglob(".*"))
    assert not list(out.rglob("*margin.*"))  # nothing that this configuration does not make


def test_a_baseline_that_cannot_be_computed_is_left_out_and_named() -> None:
    few = {**SMALL["scene"], "n_bands": 8}  # the paper takes 15 components
    config = {**SMALL, "scene": few, "rejectors": ["pixelwise"], "baselines": ["paper", "svm"]}
    with pytest.warns(HsrejectWarning, match=r"'paper' is left out.*n_components"):
        result = hr.run(config)
    assert list(result["summary/system"].values) == ["pixelwise", "svm", "coordinates"]


class LazyOnly(hr.SceneClassifier):
    """Takes scenes only as they lie on disk."""

    def fit_predict_proba(self, cube, labels, **options):
        assert cube.chunks is not None
        return super().fit_predict_proba(cube, labels, **options)


def test_a_large_file_is_never_read_as_a_whole(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("hsreject.features.windows._LARGEST_WHOLE", 1000)
    monkeypatch.setattr("hsreject.features.windows._SIDE", 32)
    cube, labels = hr.synthetic_scene(rows=60, columns=50, n_classes=3, n_bands=8)
    cube = cube.drop_vars("wavelength")
    cube.rio.to_raster(tmp_path / "scene.tif", tiled=True, blockxsize=16, blockysize=16)
    hr.write_map(labels, tmp_path / "labels.tif")
    files = {"path": str(tmp_path / "scene.tif"), "labels": str(tmp_path / "labels.tif")}
    model = LazyOnly("lda", features=[hr.PCA(4)])
    config = {"classifier": model, "features": [], "rejectors": ["pixelwise"], "baselines": []}
    on_disk = hr.run({**config, "scene": {"name": "files", **files}})
    config["classifier"] = hr.SceneClassifier("lda", features=[hr.PCA(4)])
    in_memory = hr.run({**config, "scene": (cube, labels)})
    np.testing.assert_array_equal(on_disk.label, in_memory.label)
    assert in_memory.attrs["scene_hash"] == tokenize(cube)  # by which finished stages are found
