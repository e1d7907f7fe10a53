"""Configurations end to end, on scenes small enough to solve in a second."""

import importlib
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
import rasterio
import xarray as xr
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import hsreject as hr
from hsreject.errors import FileError
from hsreject.plot import BreakEvenCostDisplay
from hsreject.report.run_report import run_report
from hsreject.schema import REJECTED, class_table, nodata_label

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
    assert list(result["system"].values)[-1] == "coordinates"
    assert result.attrs["seed"] == 3
    assert "vector_tv" in result.attrs["configuration"]
    assert str(folder) not in str(result.attrs)


def test_each_rejector_rejects_what_was_asked_and_never_nodata(finished) -> None:
    result, _ = finished
    labels = result["label_with_rejection"]
    nodata = labels.values == nodata_label(labels.dtype)
    cube, _ = hr.synthetic_scene(rows=40, columns=36, n_classes=3, n_bands=12)
    np.testing.assert_array_equal(nodata, np.isnan(cube.values).any(axis=0)[None].repeat(3, 0))
    assert not (result["rejected"].values & nodata).any()
    np.testing.assert_array_equal(labels.values == REJECTED, result["rejected"].values)
    n_pixels = (~nodata[0]).sum()
    for name in ("pixelwise", "sequential"):
        share = result["rejected"].sel(rejector=name).values.sum() / n_pixels
        assert share == pytest.approx(0.2, abs=1.5 / n_pixels)


def test_the_summary_agrees_with_the_maps(finished) -> None:
    result, _ = finished
    test = result["test"].values
    label = result["label"].sel(rejector="sequential").values
    used = (test > 0) & (label != nodata_label(label.dtype))
    accuracy = (label[used] == test[used]).mean()
    row = result.sel(system="sequential").isel(seed=0)
    assert float(row["overall_accuracy"]) == pytest.approx(accuracy)
    points = result.isel(operating_point=result["system_of_point"].values == "sequential")
    assert float(row["largest_quality"]) == float(points["classification_quality"].max())


def test_written_maps_are_those_of_the_dataset(finished) -> None:
    result, folder = finished
    for name in result["rejector"].values:
        expected = result["label_with_rejection"].sel(rejector=name)
        with rasterio.open(folder / "maps" / f"label_with_rejection_{name}.tif") as file:
            np.testing.assert_array_equal(file.read(1), expected.values)
            assert file.crs.to_epsg() == 32633
            assert file.nodata == 255
            assert file.transform == result.rio.transform()
    names = class_table(hr.open_labels(folder / "maps" / "reference.tif")).names
    assert names == ("cover 1", "cover 2", "cover 3")


def test_a_result_on_disk_is_whole_and_can_be_reported_again(
    finished, tmp_path, monkeypatch
) -> None:
    result, folder = finished
    again = hr.open_dataset(folder / "result.nc").load()
    assert set(again.data_vars) == set(result.data_vars)
    for name in result.data_vars:
        xr.testing.assert_equal(
            again[name].drop_vars("spatial_ref", errors="ignore"),
            result[name].drop_vars("spatial_ref", errors="ignore"),
        )
    isolated, plot = [], BreakEvenCostDisplay.plot

    def watched(display, ax):
        isolated.append(display.isolated)
        return plot(display, ax)

    monkeypatch.setattr(BreakEvenCostDisplay, "plot", watched)
    run_report(again, tmp_path)
    assert isolated == [{"joint"}]  # it has no threshold, so nothing is known between its points
    first, second = ((path / "report.html").read_text("utf-8") for path in (folder, tmp_path))
    assert first == second  # pictures included


def test_tables_and_pictures_are_there(finished) -> None:
    result, folder = finished
    points = pd.read_csv(folder / "operating_points.csv")
    assert len(points) == result.sizes["operating_point"]
    assert set(points["system_of_point"]) == set(result["system"].values)
    names = {path.name for path in (folder / "figures").iterdir()}
    wanted = {"false_color.png", "reference.png", "label.png", "measures.png", "costs.png"}
    assert wanted | {"relative_optimality.png", "rejected_joint.png"} <= names
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png") == len(names)
    assert "vector_tv" in page
    overall = float(result["overall_accuracy"].sel(system="joint")[0])
    assert f"<td>{100 * overall:.1f}</td>" in page


def test_a_run_goes_on_from_finished_stages_and_repairs_damaged_ones(finished) -> None:
    result, folder = finished
    (damaged,) = (folder / "stages").glob("rejection-joint-*")
    damaged.write_bytes(damaged.read_bytes()[:100])
    before = kept_stages(folder)
    again = hr.run(SMALL, out=folder)
    xr.testing.assert_equal(result["label_with_rejection"], again["label_with_rejection"])
    after = kept_stages(folder)
    assert {path for path in after if after[path] != before.get(path)} == {damaged}
    run_stages(SMALL, folder, settings=["context.weight=2"])
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
        return float(hr.run(configured(function), out=out)["overall_accuracy"][0, 0])

    run_stages(configured(all_bands), tmp_path)
    assert accuracy(one_band, tmp_path) == accuracy(one_band) < accuracy(all_bands)
    assert len(kept_stages(tmp_path, "classifier-*")) == 2


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
    assert len(kept_stages(tmp_path / "out", "classifier-*")) == 2
    assert len(kept_stages(tmp_path / "out", "context-*")) == 3


def test_nothing_is_kept_of_what_has_no_key(tmp_path) -> None:
    generator = (number for number in (1, 2))
    function = FunctionTransformer(lambda values: values + 0 * (generator is None))
    model = make_pipeline(function, LinearDiscriminantAnalysis())
    run_stages({"scene": SMALL["scene"], "classifier": model}, tmp_path)
    assert not kept_stages(tmp_path)


def test_what_a_scene_holds_is_part_of_the_key(tmp_path) -> None:
    cube, labels = hr.synthetic_scene(rows=40, columns=36, n_classes=3, n_bands=12)
    for scene in ((cube, labels), (cube + 1, labels), (cube, labels.where(labels != 2, 0))):
        run_stages({"classifier": "lda", "seed": 3, "scene": scene}, tmp_path)
    assert len(kept_stages(tmp_path, "classifier-*")) == 3


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
    xr.testing.assert_equal(named["aurc"], objects["aurc"])


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


def test_several_seeds_give_a_summary_each() -> None:
    plain = {key: SMALL[key] for key in ("scene", "features")} | {"classifier": "lda"}
    result = hr.run(plain | {"n_seeds": 3, "seed": 5})
    assert list(result["seed"].values) == [5, 6, 7]
    single = hr.run(plain | {"seed": 6})
    xr.testing.assert_equal(
        result["overall_accuracy"].sel(seed=6), single["overall_accuracy"].sel(seed=6)
    )


def test_folders_of_others_are_left_alone(tmp_path) -> None:
    (tmp_path / "thesis.txt").write_text("do not lose me")
    with pytest.raises(FileError, match="not made by a run"):
        hr.run(SMALL, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
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
    hr.run(plain, out=out)
    assert not list(out.rglob(".*"))
    assert not list(out.rglob("*margin.*"))  # nothing that this configuration does not make
