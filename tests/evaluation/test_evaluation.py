"""Evaluation of maps against counts made by hand."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import FileError, InputError, TrainingPixelsWarning
from hsreject.evaluation.evaluation import summary_lines
from hsreject.evaluation.tables import area_table, goal_costs
from hsreject.report import findings

NODATA = 255
REFERENCE = np.array([[1, 1, 1, 2, 2, 2], [0, 2, 1, 1, 2, 0]])
LABEL = np.array([[1, 1, 2, 2, 2, 1], [1, NODATA, 1, 2, 2, 2]], dtype=np.uint8)
CONFIDENCE = np.array([[0.9, 0.8, 0.3, 0.7, 0.6, 0.4], [0.1, 0.5, np.nan, 0.65, 0.95, 0.2]])
REJECTED = np.array([[0, 0, 1, 0, 1, 1], [0, 0, 0, 0, 0, 1]], dtype=bool)


def everything() -> hr.Evaluation:
    return hr.evaluate(REFERENCE, LABEL, CONFIDENCE, rejected=REJECTED, rejection_cost=[0.3])


def mask_alone() -> hr.Evaluation:
    return hr.evaluate(REFERENCE, LABEL, rejected=REJECTED)


def test_points_by_hand() -> None:
    result = everything()
    assert result.samples.correct.size == 8  # 10 with reference, 1 without label, 1 without c
    assert result.samples.n_without_data == 2
    points = {named.name: named.point for named in result.points}
    assert list(points) == ["no rejection", "given mask", "largest Q", "cheapest at cost 0.3"]
    assert points["no rejection"].nonrejected_accuracy == 5 / 8
    mask = points["given mask"]
    counts = mask.accurate_kept, mask.misclassified_kept, mask.accurate_rejected
    assert (*counts, mask.misclassified_rejected) == (4, 1, 1, 2)
    # the two least confident are errors, the next (0.6) is accurate, then an error at 0.65
    assert points["largest Q"].rejected_fraction == 2 / 8
    assert points["largest Q"].classification_quality == 7 / 8
    cheapest = result.points[-1]
    # rejecting 2: 1 error kept + 2 x 0.3 = 1.6; rejecting 4: 4 x 0.3 = 1.2
    assert cheapest.cost == pytest.approx(1.2 / 8)
    assert (cheapest.rejection_cost, cheapest.point.threshold) == (0.3, 0.7)
    table = result.table()
    assert table["operating_point"].values.tolist() == list(points)
    assert np.isnan(table["threshold"][1])
    assert table["rejected_fraction"].values.tolist() == [0, 3 / 8, 2 / 8, 4 / 8]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"rejected": REJECTED, "rejection_cost": [0.3]}, "given mask"),
        ({"rejection_cost": [0.3, 0.5]}, "cheapest at cost 0.3"),
        ({"rejection_cost": 0.3}, "cheapest at cost 0.3"),
        ({}, "largest Q"),
    ],
)
def test_maps_and_matrix_show_the_point_that_was_asked_for(options: dict, shown: str) -> None:
    result = hr.evaluate(REFERENCE, LABEL, CONFIDENCE, **options)
    assert result.shown.name == shown
    n_rejected = int(result.confusion.sel(decision=0).sum())
    assert n_rejected == result.shown.point.rejected
    assert int(result.confusion.sum()) == 8
    at_samples = result.samples.at(result.rejected)
    assert at_samples.sum() == result.shown.point.rejected


def test_a_mask_alone_is_one_point() -> None:
    result = mask_alone()
    assert result.curve is None
    assert [named.name for named in result.points] == ["no rejection", "given mask"]
    assert not any("10 %" in line for line in summary_lines(result))


def test_classes_of_the_labels_alone_are_in_the_matrix() -> None:
    table = hr.ClassTable.from_names(["soil", "water"])
    reference = xr.DataArray(REFERENCE, dims=("y", "x"), attrs=table.to_attrs())
    label = np.where(LABEL == 2, 7, LABEL)
    result = hr.evaluate(reference, label, CONFIDENCE)
    assert result.classes.names == ("soil", "water", "class 7")
    assert len(set(result.classes.colors)) == 3


def test_bad_input_is_one_clear_error() -> None:
    for change, word in (
        ({"confidence": None}, "or both"),
        ({"confidence": None, "rejected": REJECTED, "rejection_cost": [0.3]}, "needs a confidence"),
        ({"rejection_cost": [1.5]}, r"\[0, 1\]"),
        ({"reference": np.zeros_like(REFERENCE)}, "no reference pixels"),
        ({"confidence": np.where(CONFIDENCE > 0.9, np.inf, CONFIDENCE)}, "must be finite"),
        ({"label": LABEL[:, :3]}, "shape|columns"),
        ({"label": np.where(LABEL == 1, 0, LABEL)}, "label is 0"),
        ({"rejected": REJECTED.astype(float)}, "must be boolean"),
        ({"block_size": 0}, "block_size"),
        ({"groups": REFERENCE[:, :3]}, "3 columns"),
    ):
        given = {"reference": REFERENCE, "label": LABEL, "confidence": CONFIDENCE} | change
        with pytest.raises(InputError, match=word) as caught:
            hr.evaluate(**given)
        assert "\n" not in str(caught.value)


def test_files_hold_the_curve_and_the_table(tmp_path: Path) -> None:
    result = everything()
    files = result.write(tmp_path / "out")
    written = {path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert {*files, tmp_path / "out" / "manifest.txt"} == written
    tables = {"points.csv", "curve.csv", "curve.nc", "report.html"}
    tables |= {"classes.csv", "areas.csv", "confusion.csv"}
    drawn = "accuracy measures costs relative_optimality "
    drawn += "rejected_map reference outcome_map confidence_map"
    assert {file.name for file in files} == tables | {f"{name}.png" for name in drawn.split()}
    stored = hr.open_dataset(tmp_path / "out" / "curve.nc")
    np.testing.assert_array_equal(stored["rejection_quality"], result.curve["rejection_quality"])
    lines = (tmp_path / "out" / "curve.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + result.curve.sizes["operating_point"]
    assert lines[0].startswith("rejected_fraction,nonrejected_accuracy,")
    matrix = (tmp_path / "out" / "confusion.csv").read_text(encoding="utf-8").splitlines()
    assert matrix[0] == "reference,class 1,class 2,rejected"


def test_long_curves_are_written_with_their_intervals(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    confidence = generator.uniform(0, 1, (110, 100))
    label = np.where(generator.uniform(0, 1, (110, 100)) < confidence, 1, 2).astype(np.uint8)
    result = hr.evaluate(np.ones_like(label), label, confidence, block_size=10)
    assert np.unique(result.clusters.block).size == 110
    kept = result.curve.isel(operating_point=slice(None, -1))  # the last keeps nothing
    assert (kept.nonrejected_accuracy_lower < kept.nonrejected_accuracy).all()
    above = kept.nonrejected_accuracy_upper - kept.nonrejected_accuracy
    assert (above > -1e-12).all()  # rounding, where nothing kept is wrong
    result.write(tmp_path / "out")
    # the curve is whole in NetCDF, and spaced as table programs take it in CSV
    assert hr.open_dataset(tmp_path / "out" / "curve.nc").sizes["operating_point"] == 11_001
    lines = (tmp_path / "out" / "curve.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 10_001
    assert lines[1].startswith("0.0,")
    assert lines[-1].startswith("1.0,")


def test_hectares_are_those_on_the_ground() -> None:
    # 100 m of Mercator's projection at 60 degrees north are 50 m, and one hectare is a quarter
    north = 8_399_738.0  # of 60 degrees
    place = {"y": [north + 50, north - 50], "x": 100 * np.arange(6) + 50.0}
    label = xr.DataArray(LABEL, dims=("y", "x"), coords=place).rio.write_crs("EPSG:3857")
    areas = area_table(hr.evaluate(REFERENCE, label, rejected=REJECTED))
    np.testing.assert_allclose(areas["kept_hectares"], [1, 0.75], rtol=0.01)
    degrees = {"y": [60.001, 60.0], "x": 20 + 0.001 * np.arange(6)}
    label = xr.DataArray(LABEL, dims=("y", "x"), coords=degrees).rio.write_crs("EPSG:4326")
    areas = area_table(hr.evaluate(REFERENCE, label, rejected=REJECTED))
    pixel = 111.4 * 111.4 * 0.5 / 10_000  # metres of a thousandth of a degree, at that latitude
    np.testing.assert_allclose(areas["kept_hectares"], [4 * pixel, 3 * pixel], rtol=0.01)


def test_tables_by_hand(tmp_path: Path) -> None:
    table = hr.ClassTable.from_names(["=corn", "-soil"])
    place = {"y": [4e6 - 50, 4e6 - 150], "x": 5e5 + 100 * np.arange(6) + 50}
    reference = xr.DataArray(REFERENCE, dims=("y", "x"), coords=place, attrs=table.to_attrs())
    label = xr.DataArray(LABEL, dims=("y", "x"), coords=place).rio.write_crs("EPSG:32633")
    result = hr.evaluate(reference, label, rejected=REJECTED)
    result.write(tmp_path / "out")
    rows = {}
    for name in ("classes", "areas", "confusion"):
        with (tmp_path / "out" / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            rows[name] = list(csv.DictReader(stream))
            assert all(cell[0] not in "=+-@" for row in rows[name] for cell in row.values())
    # of 9 pixels with reference and label: the mask keeps 3 of class 1 and 2 of class 2 as they
    # should be, and one of class 1 as class 2
    corn, soil = rows["classes"]
    assert [corn[name] for name in ("class", "value")] == ["'=corn", "1"]
    counts = ("reference_pixels", "reference_pixels_kept", "label_pixels_kept")
    assert [int(corn[name]) for name in counts] == [5, 4, 3]
    assert [int(soil[name]) for name in counts] == [4, 2, 3]
    shares = ("user_accuracy", "producer_accuracy", "producer_accuracy_unrejected")
    assert [float(corn[name]) for name in shares] == [1, 3 / 4, 3 / 5]
    assert [float(soil[name]) for name in shares] == [2 / 3, 1, 3 / 4]
    assert float(soil["user_accuracy_lower"]) < 2 / 3 < float(soil["user_accuracy_upper"])
    # of the scene, whose pixels have a hectare each, 11 pixels have data
    assert [float(row["kept_hectares"]) for row in rows["areas"]] == [4, 3]
    assert [float(row["rejected_hectares"]) for row in rows["areas"]] == [1, 3]
    assert [row["rejected"] for row in rows["confusion"]] == ["1", "2"]
    assert rows["confusion"][0]["'-soil"] == "1"
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    for words in ("EPSG:32633", "7.00 ha", "100 m", "user&#39;s accuracy"):
        assert words in page


def test_what_an_accuracy_costs_by_hand(tmp_path: Path) -> None:
    # reference pixels by confidence: .95 r, .9 r, .8 r, .7 r, .65 wrong, .6 r, .4 wrong, .3 wrong
    result = hr.evaluate(REFERENCE, LABEL, CONFIDENCE)
    half, most, all_ = goal_costs(result, (0.5, 0.8, 1.0))
    assert (half.point.rejected, half.scene_share, half.lost_classes) == (0, 0, ())
    # 5 of 6 right above 0.6; of the ten pixels with data 0.4, 0.3, 0.2 and 0.1 are below
    assert (most.point.rejected, most.scene_share) == (2, 4 / 10)
    assert all_.point.rejected == 4
    result.write(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    cells = ("80 %", "25.0 %", "40.0 %", "none")
    assert re.search(".*".join(f">{cell}</t[dh]>" for cell in cells), page)
    poor = hr.evaluate(REFERENCE, LABEL, -np.nan_to_num(CONFIDENCE, nan=0.5))
    assert not goal_costs(poor, (1.0,))[0].reached
    poor.write(tmp_path / "poor")
    page = (tmp_path / "poor" / "report.html").read_text("utf-8")
    highest = float(poor.curve["nonrejected_accuracy"].max())
    assert f"out of reach</td><td>-</td><td>the highest accuracy is {100 * highest:.1f} %" in page
    assert goal_costs(mask_alone()) == []


def test_classes_that_vanish_are_named() -> None:
    rejected = REJECTED | (LABEL == 2)
    result = hr.evaluate(REFERENCE, LABEL, rejected=rejected)
    assert result.lost_classes() == (2,)
    assert findings.statement(result).endswith("Lost by rejection: class 2.")
    everything_kept = hr.evaluate(REFERENCE, LABEL, rejected=np.zeros_like(REJECTED))
    assert "none of them is rejected" in findings.statement(everything_kept)
    # pixels with the label 2 are kept, but none whose reference is 2: not lost, but untested
    untested = hr.evaluate(REFERENCE, LABEL, rejected=REFERENCE == 2)
    assert (untested.lost_classes(), untested.untested_classes()) == ((), (2,))
    assert findings.statement(untested).endswith("untested.")


def test_the_page_opens_with_the_point_that_is_shown(tmp_path: Path) -> None:
    result = everything()
    result.write(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    top = page[: page.index("<section>")]
    # of 8 reference pixels 3 are rejected by the mask; it keeps 4 right and 1 wrong one
    for words in ("62.5\u00a0% of the reference pixels (", "80.0\u00a0%", "66.7 %", "2 of 3 wrong"):
        assert words in top
    has_data = (LABEL != NODATA) & ~np.isnan(CONFIDENCE)
    assert f"{100 * (~REJECTED)[has_data].mean():.1f} %" in top
    for title in ("Maps", "Per class", "How much to reject", "Details"):
        assert title in page


def test_intervals_know_that_neighbours_err_together() -> None:
    generator = np.random.default_rng(1)
    n_blocks, side = 12, 8
    wrong = np.kron(generator.random((n_blocks, n_blocks)) < 0.3, np.ones((side, side))) > 0
    label = np.where(wrong, 2, 1).astype(np.uint8)
    given = np.ones_like(label), label
    none = np.zeros(label.shape, bool)
    share = 1 - wrong.mean()
    spread = np.sqrt(share * (1 - share) / n_blocks**2)  # of so many blocks, drawn at random
    blocks = np.kron(np.arange(n_blocks**2).reshape(n_blocks, n_blocks), np.ones((side, side)))
    for together in ({"block_size": side}, {"groups": blocks.astype(int)}):
        result = hr.evaluate(*given, rejected=none, **together)
        lower, upper = result.interval(result.points[1])
        assert upper - lower == pytest.approx(2 * 1.96 * spread, rel=0.05)
    alone = hr.evaluate(REFERENCE[:1, :1], LABEL[:1, :1], CONFIDENCE[:1, :1])
    assert np.isnan(alone.interval(alone.points[0])).all()


def test_a_reference_that_holds_training_pixels_is_warned_of(tmp_path: Path) -> None:
    train = np.zeros_like(REFERENCE)
    place = tuple(np.argwhere(REFERENCE > 0)[0])
    train[place] = REFERENCE[place]
    others = np.where(train > 0, 0, REFERENCE)
    for name, values in (("label", LABEL), ("confidence", CONFIDENCE)):
        np.save(tmp_path / f"{name}.npy", values)
    hr.write_map(xr.DataArray(train, dims=("y", "x")), tmp_path / "train.tif")
    maps = tmp_path / "label.npy", tmp_path / "confidence.npy"
    with pytest.warns(TrainingPixelsWarning, match=r"1 of the 9 .*train\.tif"):
        result = hr.evaluate(REFERENCE, *maps)
    result.write(tmp_path / "out")
    assert "training pixels" in (tmp_path / "out" / "report.html").read_text("utf-8")
    assert hr.evaluate(others, *maps).warnings == ()
    (tmp_path / "train.tif").write_bytes(b"not a map")
    assert hr.evaluate(REFERENCE, *maps).warnings == ()


def test_a_perfect_classifier_is_drawn_too(tmp_path: Path) -> None:
    label = np.where(REFERENCE == 0, 1, REFERENCE)
    hr.evaluate(REFERENCE, label, CONFIDENCE).write(tmp_path / "out")
    assert "100.0 %" in (tmp_path / "out" / "report.html").read_text("utf-8")


def test_a_folder_with_files_needs_permission(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(FileError, match="is not empty"):
        mask_alone().write(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
    mask_alone().write(tmp_path, overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "keep"
    with pytest.raises(FileError, match="is a file"):
        mask_alone().write(tmp_path / "mine.txt", overwrite=True)


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(stage: str, done: float, total: float | None) -> None:
        raise RuntimeError("in the middle")

    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "points.csv").write_text("whole")
    for folder in (tmp_path / "new" / "out", tmp_path / "old"):
        with pytest.raises(RuntimeError):
            mask_alone().write(folder, overwrite=True, progress=fail)
    assert not (tmp_path / "new" / "out").exists()
    assert [file.name for file in (tmp_path / "old").iterdir()] == ["points.csv"]
    assert (tmp_path / "old" / "points.csv").read_text() == "whole"


def test_files_are_maps_too_and_the_reference_may_be_either(tmp_path: Path) -> None:
    label = np.where(LABEL == NODATA, 9, LABEL)  # said to be no data, not by the file
    paths = {name: tmp_path / f"{name}.npy" for name in ("reference", "label", "confidence")}
    for path, values in zip(paths.values(), (REFERENCE, label, CONFIDENCE), strict=True):
        np.save(path, values)
    wanted = hr.evaluate(REFERENCE, LABEL, CONFIDENCE).table()
    assert hr.evaluate(**paths, nodata=9).table().identical(wanted)
    assert hr.evaluate(REFERENCE, label, CONFIDENCE, nodata=9).table().identical(wanted)
    mixed = hr.evaluate(str(paths["reference"]), LABEL, CONFIDENCE)
    assert mixed.table().identical(wanted)
    with pytest.raises(InputError, match="only label is a file"):
        hr.evaluate(REFERENCE, paths["label"], CONFIDENCE)
    with pytest.raises(InputError, match="different grids"):
        hr.evaluate(paths["reference"], LABEL[:1], CONFIDENCE[:1])


@pytest.mark.parametrize(
    ("attrs", "date"),
    [
        ({"source": "EMIT_L2A_RFL_001_20220903T163129_2224611_012.nc"}, "2022-09-03"),
        ({"source": "field.img", "acquisition_time": "2019-06-30T10:15:00Z"}, "2019-06-30"),
        ({"source": "tile_20220903163129.tif"}, ""),  # a number, perhaps no date
        ({"source": "scene.tif"}, ""),
    ],
)
def test_the_place_has_the_date_that_the_file_states(attrs, date) -> None:
    scene = xr.DataArray(np.zeros((2, 3)), dims=("y", "x"), attrs=attrs)
    parts = [attrs["source"], "2 x 3 pixels", date]
    assert findings.about_scene(scene) == " · ".join(filter(None, parts))


def test_unknown_pixels_of_a_ranking_are_rejected_first() -> None:
    """The curve is that of the ranking, and the shown point rejects them whatever the goal."""
    rng = np.random.default_rng(3)
    reference = rng.integers(1, 4, (20, 20))
    confidence = rng.random((20, 20))
    label = np.where(rng.random((20, 20)) < confidence, reference, reference % 3 + 1)
    unknown = rng.random((20, 20)) < 0.1
    ranking = hr.Ranking(label, confidence, unknown)
    result = hr.evaluate(reference, ranking, rejection_cost=0.3)
    points = ranking.points(reference)
    for name in ("rejected_fraction", "nonrejected_accuracy"):
        np.testing.assert_array_equal(result.curve[name], points[name])
    assert result.rejected.values[unknown].all()
    assert (~result.rejected.values).any()
    np.testing.assert_array_equal(result.maps["unknown"], unknown)
