"""``hsreject sample``, ``certify``, ``assess`` and ``map --certificate``, as a user calls them."""

import csv
import json
from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
import rasterio
import shapely
import xarray as xr

import hsreject as hr
from tests.certification.scenes import placed, ranked_map
from tests.cli.calling import call
from tests.cli.test_map import write_scene
from tests.mapping.scenes import CONFIG, larger_scene


@pytest.fixture
def files(tmp_path) -> Path:
    """Return a folder with label, confidence and training pixels of a map, and its truth."""
    values, confidence, truth = ranked_map(steepness=2.5)
    values[:5] = 255
    label = placed(values)
    hr.write_map(label, tmp_path / "label.tif")
    sure = label.copy(data=np.where(values == 255, np.nan, confidence)).drop_attrs(deep=False)
    hr.write_map(sure, tmp_path / "confidence.tif")
    train = np.zeros_like(values)
    train[5::9, ::9] = truth[5::9, ::9]
    hr.write_map(label.copy(data=train.astype(np.uint8)), tmp_path / "train.tif")
    np.save(tmp_path / "truth.npy", truth)
    return tmp_path


def fill_in(folder: Path, name: str = "sample.gpkg", **changes) -> None:
    frame = gpd.read_file(folder / name)
    names = np.array(["", "corn", "bare soil", "water"])
    frame["reference"] = names[np.load(folder / "truth.npy")[frame.row, frame.column]]
    frame.assign(**changes).to_file(folder / name)


def draw(folder: Path, *options: object) -> None:
    assert call("sample", folder / "label.tif", "--n", 500, "--out", folder / "sample.gpkg",
                "--exclude", folder / "train.tif", *options) == 0  # fmt: skip


def certify(folder: Path, *options: object) -> int:
    return call("certify", "--labels", folder / "label.tif", "--confidence",
                folder / "confidence.tif", "--sample", folder / "sample.gpkg", "--exclude",
                folder / "train.tif", "--out", folder / "out", *options)  # fmt: skip


def test_from_a_map_to_a_certificate_and_areas(capsys, files) -> None:
    draw(files)
    said = capsys.readouterr().out
    assert "corn, bare soil, water" in said
    assert f"hsreject certify --labels {files / 'label.tif'}" in said
    fill_in(files)
    assert certify(files, "--max-error", 0.1) == 0
    said = capsys.readouterr().out
    made = hr.Certificate.read(files / "out/certificate.json")
    assert made.threshold is not None
    assert made.statement in said
    assert "7,392 pixels" in said  # 7,500 with data, without 108 training pixels
    with rasterio.open(files / "out/label_with_rejection.tif") as file:
        kept = file.read(1)
    label = hr.open_map(files / "label.tif").values
    confidence = hr.open_map(files / "confidence.tif").values
    np.testing.assert_array_equal(
        kept, np.where((confidence < made.threshold) & (label != 255), 0, label)
    )
    tests = list(csv.DictReader((files / "out/tests.csv").read_text().splitlines()))
    assert len(tests) == len(made.tests)
    assert (files / "out/certificate.png").stat().st_size > 10_000
    assert call("assess", files / "out/label_with_rejection.tif", "--sample",
                files / "sample.gpkg", "--out", files / "areas") == 0  # fmt: skip
    said = capsys.readouterr().out
    assert "kept accuracy" in said
    assert "rejected: " in said
    assert "bare soil" in said
    names = {file.name for file in (files / "areas").iterdir()}
    assert names - {"manifest.txt"} == {"assessment.csv", "error-matrix.csv", "areas.png"}


def test_nothing_certified_is_an_answer(capsys, files) -> None:
    draw(files)
    fill_in(files)
    assert certify(files, "--max-error", 0.001) == 0
    assert "Nothing can be certified" in capsys.readouterr().out
    assert not (files / "out/label_with_rejection.tif").exists()
    assert json.loads((files / "out/certificate.json").read_text())["threshold"] is None


def test_a_climb_batch_by_batch_until_it_ends(capsys, files) -> None:
    on_map = ("--confidence", files / "confidence.tif")
    sample = ("--sample", files / "sample.gpkg")
    assert call("sample", files / "label.tif", *on_map, "--for-promise", 0.1, "--n", 150,
                "--exclude", files / "train.tif", "--out", files / "sample.gpkg", "--seed",
                0) == 0  # fmt: skip
    said = capsys.readouterr().out
    assert "--more 50" in said
    assert f"--exclude {files / 'train.tif'}" in said  # what is printed runs as it is
    for _ in range(20):
        fill_in(files)
        without = ("--exclude", files / "train.tif", "--overwrite", "--more", 50)
        assert certify(files, *without) == 0
        said = capsys.readouterr().out
        if "no more points" in said:
            break
    made = hr.Certificate.read(files / "out/certificate.json")
    assert (made.design, made.finished) == ("sequential", True)
    assert made.statement in said
    assert len(gpd.read_file(files / "sample.gpkg")) == made.n_points <= 150
    kept = hr.open_map(files / "out/label_with_rejection.tif")
    assert kept.attrs["zero_meaning"] == "rejected"
    assert call("certify", "--labels", files / "label.tif", *on_map, *sample, "--out",
                files / "no") == 2  # fmt: skip
    assert "exclude" in capsys.readouterr().err


def test_a_sequential_design_for_each_class_and_a_plan(capsys, files) -> None:
    on_map = ("--confidence", files / "confidence.tif", "--exclude", files / "train.tif")
    assert call("sample", files / "label.tif", *on_map, "--for-promise", 0.2, "--n", 200,
                "--per-class", "each", "--out", files / "sample.gpkg", "--seed",
                0) == 0  # fmt: skip
    fill_in(files)
    assert certify(files) == 0
    said = capsys.readouterr().out
    assert "kept of the class" in said
    rows = list(csv.DictReader((files / "out/classes.csv").read_text().splitlines()))
    assert [row["class_name"] for row in rows] == ["corn", "bare soil", "water"]
    promised = hr.Certificate.read(files / "out/certificate.json").by_class
    assert [row["threshold"] for row in rows] == [str(one.threshold or "") for one in promised]
    assert call("sample", files / "label.tif", *on_map, "--plan", "--predicted",
                files / "confidence.tif") == 0  # fmt: skip
    assert "800 labels" in capsys.readouterr().out
    assert call("sample", files / "label.tif", "--plan") == 2
    assert "--confidence" in capsys.readouterr().err


def test_what_a_model_or_a_run_held_back_predicts_the_errors(capsys, tmp_path) -> None:
    scene = write_scene(larger_scene(70, 80), tmp_path / "scene.tif", "GTiff")
    model = hr.save_model(hr.train(CONFIG), tmp_path / "model.skops")
    assert call("map", scene, "--model", model, "--fraction", 0, "--out", tmp_path / "all") == 0
    plan = ("sample", tmp_path / "all/label.tif", "--confidence", tmp_path / "all/confidence.tif",
            "--plan", "--predicted")  # fmt: skip
    assert call(*plan, model) == 0
    table = capsys.readouterr().out
    assert "prediction" in table
    # the model errs less than one pixel in ten where it keeps all but the unknown: one in a hundred
    (row,) = [line for line in table.splitlines() if line.strip().startswith("10 %")]
    assert "99 %" in row
    assert call(*plan, tmp_path) == 2
    assert "label_probability" in capsys.readouterr().err
    (tmp_path / "maps").mkdir()
    confidence = hr.open_map(tmp_path / "all/confidence.tif")
    hr.write_map(confidence * 0 + 0.99, tmp_path / "maps/label_probability.tif")
    assert call(*plan, tmp_path) == 0
    assert "800 labels" in capsys.readouterr().out
    # test pixels, all of them wrong, are heard first
    wrong = hr.open_map(tmp_path / "all/label.tif") % 3 + 1
    hr.write_map(wrong.astype(np.uint8).rename("test"), tmp_path / "maps/test.tif")
    assert call(*plan, tmp_path) == 0
    assert {word for word in capsys.readouterr().out.split() if word.isdigit()} <= {
        "0", "2", "5", "10", "100", "200", "400", "800",
    }  # fmt: skip


def test_a_classifier_alone_predicts_no_errors(capsys, files) -> None:
    cube, labels = hr.synthetic_scene(rows=20, columns=20, n_bands=4)
    model = hr.save_model(hr.SceneClassifier("lda").fit(cube, labels), files / "lda.skops")
    assert call("sample", files / "label.tif", "--confidence", files / "confidence.tif", "--plan",
                "--predicted", model) == 2  # fmt: skip
    assert "hsreject train" in capsys.readouterr().err


def test_a_run_predicts_the_errors_of_answers_with_groups(capsys, tmp_path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        'features = []\nclassifier = "lda"\n[groups]\nfields = ["cover 1", "cover 2"]\n'
        '[scene]\nname = "synthetic"\nrows = 32\ncolumns = 32\nn_bands = 8\n'
    )
    assert call("run", config, "--out", tmp_path / "run") == 0
    maps = tmp_path / "run" / "maps"
    assert call("sample", maps / "label_hierarchical.tif", "--confidence",
                maps / "level_confidence_hierarchical.tif", "--plan", "--predicted",
                tmp_path / "run") == 0  # fmt: skip
    assert "800 labels" in capsys.readouterr().out


def test_a_sequence_of_maps(capsys, files) -> None:
    label, confidence = (hr.open_map(files / f"{name}.tif") for name in ("label", "confidence"))
    options = []
    for fraction in (0.2, 0.5, 0.8):
        keep = (confidence >= np.nanquantile(confidence, fraction)) | (label == 255)
        hr.write_map(label.where(keep, 0).assign_attrs(label.attrs), files / f"{fraction}.tif")
        options += ["--labels", files / f"{fraction}.tif"]
    out = ("--sample", files / "sample.gpkg", "--max-error", 0.2, "--out", files / "out")
    assert call("sample", files / "0.8.tif", "--n", 500, "--out", files / "sample.gpkg") == 0
    fill_in(files)
    assert call("certify", *options, *out) == 0
    assert "map: 0." in capsys.readouterr().out
    made = hr.Certificate.read(files / "out/certificate.json")
    chosen = hr.open_map(files / f"{(0.2, 0.5, 0.8)[int(made.threshold)]}.tif")
    np.testing.assert_array_equal(hr.open_map(files / "out/label_with_rejection.tif"), chosen)
    assert call("certify", *options[:2], *out, "--overwrite") == 2
    assert "--confidence" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "options", "word"),
    [
        ({"design": "found in a drawer"}, (), "--assume-random"),
        ({"reference": ""}, (), "No sampled pixel"),
        ({}, ("--max-error", 5), "max_error"),
        ({}, ("--column", "truth"), "'truth'"),
        ({}, ("--confidence-level", 0), "confidence_level"),
    ],
)
def test_bad_input_ends_in_one_sentence_and_leaves_nothing(
    change, options, word, capsys, files
) -> None:
    draw(files)
    fill_in(files, **change)
    capsys.readouterr()
    assert certify(files, *options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert word in line
    assert not (files / "out").exists()


def test_points_of_other_software_with_a_word_of_honour(capsys, files) -> None:
    draw(files)
    fill_in(files, design="found in a drawer")
    assert certify(files, "--max-error", 0.1, "--assume-random") == 0
    assert "as stated by the user" in capsys.readouterr().out


def test_maps_of_other_software(capsys, files) -> None:
    """A .npy file without names or place, where 0 is what lies outside."""
    values = hr.open_map(files / "label.tif").values
    np.save(files / "other.npy", np.where(values == 255, 0, values))
    sample = files / "other.csv"
    arguments = ("sample", files / "other.npy", "--nodata", 0, "--n", 90, "--out", sample)
    assert call(*arguments, "--design", "stratified", "--show-label") == 0
    rows = list(csv.DictReader(sample.read_text().splitlines()))
    assert {row["map_label"] for row in rows} == {"class 1", "class 2", "class 3"}
    assert call(*arguments) == 2
    assert "already there" in capsys.readouterr().err
    with sample.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        truth = np.load(files / "truth.npy")
        for row in rows:
            row["reference"] = truth[int(row["row"]), int(row["column"])]
        writer.writerows(rows)
    assert call("assess", files / "other.npy", "--nodata", 0, "--sample", sample) == 0
    said = capsys.readouterr().out
    assert "counted pixels" in said
    assert "stratified" in said


def test_a_value_of_an_array_that_may_mean_no_data_is_asked_about(capsys, files) -> None:
    values = hr.open_map(files / "label.tif").values
    np.save(files / "other.npy", values)
    np.save(files / "gaps.npy", np.where(values == 255, np.nan, values))
    arguments = ("--n", 2000, "--out", files / "sample.csv", "--overwrite")
    assert call("sample", files / "other.npy", *arguments) == 2
    assert "nodata=255" in capsys.readouterr().err
    for given in ((files / "other.npy", "--nodata", 255), (files / "gaps.npy",)):
        assert call("sample", *given, *arguments) == 0
        rows = csv.DictReader((files / "sample.csv").read_text().splitlines())
        assert min(int(row["row"]) for row in rows) == 5  # above it the map has no data


@pytest.mark.filterwarnings("ignore::hsreject.errors.DriftWarning")  # the other scene is noisier
def test_a_map_is_made_again_with_its_certificate_and_no_other(capsys, tmp_path) -> None:
    scene = write_scene(larger_scene(70, 80), tmp_path / "scene.tif", "GTiff")
    model = hr.save_model(hr.train(CONFIG), tmp_path / "model.skops")
    arguments = ("map", scene, "--model", model)
    assert call(*arguments, "--fraction", 0, "--out", tmp_path / "all") == 0
    label, confidence = (
        hr.open_map(tmp_path / f"all/{name}.tif") for name in ("label", "confidence")
    )
    truth = np.where(confidence.values < np.quantile(confidence, 0.3), 9, label.values)
    sample = hr.draw_sample(label, 400).with_reference(truth)
    made = hr.certify(label, confidence, sample)
    made.write(tmp_path / "certificate.json")
    with_certificate = ("--certificate", tmp_path / "certificate.json")
    assert call(*arguments, *with_certificate, "--out", tmp_path / "kept") == 0
    assert "certified. With 90 % confidence" in capsys.readouterr().out
    kept = hr.open_map(tmp_path / "kept/label_with_rejection.tif")
    np.testing.assert_array_equal(kept, made.apply(label, confidence).label_with_rejection)
    other = write_scene(larger_scene(70, 80, noise=0.1), tmp_path / "other.tif", "GTiff")
    smaller = write_scene(larger_scene(60, 80), tmp_path / "smaller.tif", "GTiff")
    # the other scene is noisier: 'map' would refuse it before it looks at the certificate
    for scene, anyway in ((other, ("--foreign", "allow")), (smaller, ())):
        no = ("--out", tmp_path / "no", *anyway)
        assert call("map", scene, *arguments[2:], *with_certificate, *no) == 2
        assert "another map" in capsys.readouterr().err
        assert not list((tmp_path / "no").glob("*.tif"))  # finished blocks stay, for another wish
    assert call(*arguments, *with_certificate, "--fraction", 0.1, "--out", tmp_path / "no") == 2
    assert "exactly one" in capsys.readouterr().err


def test_a_geopackage_of_points_is_enough_to_label(capsys, files) -> None:
    on_map = hr.open_map(files / "label.tif").astype("float32").drop_attrs(deep=False)
    on_map.expand_dims(band=[1, 2, 3]).rio.to_raster(files / "scene.tif")
    pages = []
    for end in ("gpkg", "csv"):
        call("sample", files / "label.tif", "--n", 20, "--out", files / f"points.{end}")
    points = ("label", files / "points.gpkg", "--scene", files / "scene.tif")
    for labels in ((), ("--labels", files / "label.tif")):
        assert call(*points, *labels, "--out", files / "page.html", "--overwrite") == 0
        pages.append((files / "page.html").read_text(encoding="utf-8"))
    assert pages[0] == pages[1]
    capsys.readouterr()
    unnamed = ("label", files / "points.csv", *points[2:])
    for wrong in (unnamed, (*points, "--show-label")):
        assert call(*wrong, "--out", files / "no.html") == 2
        assert "--labels" in capsys.readouterr().err
    assert not (files / "no.html").exists()


def test_a_stratified_sample_is_for_assess_alone(capsys, files) -> None:
    sample = files / "sample.gpkg"
    assert call("sample", files / "label.tif", "--n", 200, "--design", "stratified", "--out",
                sample) == 0  # fmt: skip
    said = capsys.readouterr().out
    assert "hsreject assess" in said
    assert "hsreject certify" not in said
    fill_in(files)
    assert certify(files) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "hsreject assess" in line
    assert "--for-promise" in line
    assert not (files / "out").exists()


def test_certificates_of_newer_versions_and_edited_ones_end_in_one_sentence(
    capsys, tmp_path
) -> None:
    scene = write_scene(larger_scene(70, 80), tmp_path / "scene.tif", "GTiff")
    model = hr.save_model(hr.train(CONFIG), tmp_path / "model.skops")
    label, confidence, truth = ranked_map(steepness=3)
    sample = hr.draw_sample(label, 400).with_reference(truth)
    stored = json.loads(hr.certify(label, confidence, sample, max_error=0.2).to_json())
    for edit, word in (({"format_number": 3}, "Update"), ({"n_points": 9}, "certify again")):
        (tmp_path / "c.json").write_text(json.dumps(stored | edit))
        assert call("map", scene, "--model", model, "--certificate", tmp_path / "c.json", "--out",
                    tmp_path / "no") == 2  # fmt: skip
        (line,) = capsys.readouterr().err.splitlines()
        assert word in line
        assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    "options",
    [("--per-class", "each"), ("--predicted", "confidence.tif"),
     ("--plan", "--confidence", "confidence.tif", "--per-class", "each"),
     ("--for-promise", 0.1, "--confidence", "confidence.tif", "--design", "stratified")],
)  # fmt: skip
def test_options_that_would_do_nothing_are_refused(capsys, files, monkeypatch, options) -> None:
    monkeypatch.chdir(files)
    assert call("sample", "label.tif", "--n", 200, "--out", "s.csv", *options) == 2
    assert "--" in capsys.readouterr().err
    assert not Path("s.csv").exists()


def test_a_new_design_has_points_of_its_own_unless_a_seed_says_otherwise(files) -> None:
    plan = ("--confidence", files / "confidence.tif", "--for-promise", 0.1, "--n", 100)
    drawn = {}
    for name, seed in {"a": (), "b": (), "c": ("--seed", 1), "d": ("--seed", 1)}.items():
        path = files / f"{name}.csv"
        assert call("sample", files / "label.tif", *plan, "--out", path, *seed) == 0
        drawn[name] = path.read_text()
    assert drawn["a"] != drawn["b"]
    assert drawn["c"] == drawn["d"]


def test_polygons_exclude_what_they_cover_without_any_attribute(files) -> None:
    label = hr.open_map(files / "label.tif")
    x, y = label.x.values, label.y.values
    cloud = shapely.box(x[10] - 15, y[60] - 15, x[70] + 15, y[20] + 15)
    gpd.GeoDataFrame(geometry=[cloud], crs=32633).to_crs(4326).to_file(files / "cloud.gpkg")
    assert call("sample", files / "label.tif", "--n", 500, "--out", files / "s.csv", "--exclude",
                files / "cloud.gpkg") == 0  # fmt: skip
    points = hr.open_sample(files / "s.csv", label)
    inside = (np.abs(points.row - 40) <= 20) & (np.abs(points.column - 40) <= 30)
    assert not inside.any()
    assert points.design.n_pixels == (label != 255).sum() - 41 * 61


def test_pixels_in_degrees_count_alike_and_it_is_said(capsys, tmp_path) -> None:
    label, confidence, truth = ranked_map(20, 20, steepness=3)
    place = {"y": 60 - 0.001 * np.arange(20), "x": 10 + 0.001 * np.arange(20)}
    maps = {
        name: xr.DataArray(values, dims=("y", "x"), coords=place).rio.write_crs("EPSG:4326")
        for name, values in (("label", label.astype(np.uint8)), ("confidence", confidence))
    }
    for name, one in maps.items():
        hr.write_map(one.rename(name), tmp_path / f"{name}.tif")
    sample = hr.draw_sample(maps["label"], 200).with_reference(truth)
    sample.write(tmp_path / "sample.csv")
    on_map = ("--labels", tmp_path / "label.tif", "--confidence", tmp_path / "confidence.tif")
    assert call("certify", *on_map, "--sample", tmp_path / "sample.csv", "--max-error", 0.3,
                "--out", tmp_path / "out") == 0  # fmt: skip
    assert "not about hectares" in capsys.readouterr().out
