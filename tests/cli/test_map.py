"""``hsreject train`` and ``hsreject map`` as a user calls them, on files that GDAL wrote."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import rasterio
import tomli_w
import xarray as xr
from scipy.io import savemat

import hsreject as hr
from tests.cli.calling import call
from tests.io.writers import write_with_gdal
from tests.mapping.scenes import CONFIG, larger_scene

NODATA = -9999.0


def write_scene(cube: xr.DataArray, path: Path, driver: str) -> Path:
    values = cube.fillna(NODATA).values.astype(np.float32)
    place = {"transform": cube.rio.transform(recalc=True), "nodata": NODATA}
    tiles = {"tiled": True, "blockxsize": 64, "blockysize": 64, "interleave": "pixel"}
    profile = place | (tiles if driver == "GTiff" else {})
    write_with_gdal(path, values, driver=driver, **profile)
    listed = [f"{wavelength:.4f}" for wavelength in cube.wavelength.values]
    if driver == "ENVI":  # GDAL keeps band tags elsewhere; this is how sensors say it
        with path.with_suffix(".hdr").open("a") as header:
            header.write(f"wavelength units = Nanometers\nwavelength = {{{', '.join(listed)}}}\n")
        return path
    with rasterio.open(path, "r+") as file:
        for band, wavelength in enumerate(listed, start=1):
            file.update_tags(band, wavelength=wavelength, wavelength_units="nm")
    return path


@pytest.fixture(scope="module")
def cube() -> xr.DataArray:
    scene = larger_scene(150, 130)
    scene[:, 100:140, 20:60] = np.nan
    return scene


@pytest.fixture(scope="module")
def files(tmp_path_factory, cube) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("scenes")
    (folder / "config.toml").write_text(tomli_w.dumps(CONFIG))
    return {
        "config": folder / "config.toml",
        "model": hr.save_model(hr.train(CONFIG), folder / "model.skops"),
        "GTiff": write_scene(cube, folder / "scene.tif", "GTiff"),
        "ENVI": write_scene(cube, folder / "scene.img", "ENVI"),
    }


def test_training_writes_a_model_and_says_what_thresholds_bring(capsys, files, tmp_path) -> None:
    model = tmp_path / "m.skops"
    arguments = ("train", files["config"], "--model", model, "--set", "context.weight=0.5")
    assert call(*arguments) == 0
    told = capsys.readouterr().out
    for text in ("Small", "--fraction 0.1", "--rejection-cost 0.3", f"wrote {model}"):
        assert text in told
    assert hr.load_model(model).rejector.context.priors[0].weight == 0.5
    assert call(*arguments) == 2
    assert "is already there" in capsys.readouterr().err
    assert call(*arguments, "--overwrite") == 0


@pytest.mark.parametrize("driver", ["GTiff", "ENVI"])
def test_mapping_writes_maps_that_other_programs_read(
    driver, capsys, files, cube, tmp_path
) -> None:
    out = tmp_path / "out"
    arguments = ("map", files[driver], "--model", files["model"], "--out", out)
    options = ("--fraction", 0.2, "--block-size", 60)
    assert call(*arguments, *options) == 0
    told = capsys.readouterr()
    assert "unknown: " in told.out
    assert "mapping done" in told.err
    page = (out / "explorer.html").read_text("utf-8")
    assert f"<title>{files[driver].name}" in page
    assert '<img id="picture" src="data:image' in page
    assert "explorer.html" in told.out
    in_memory = hr.map_scene(
        cube, files["model"], hr.Goal(fraction=0.2), resources=hr.Resources(block_size=60)
    )
    for name in ("label", "label_with_rejection", "confidence"):
        with rasterio.open(out / f"{name}.tif") as file:
            assert file.crs.to_epsg() == 32633
            assert file.transform.almost_equals(cube.rio.transform(recalc=True))
            values = file.read(1)
            wanted = in_memory.maps[name].values
            # the values of the file are those of the cube, but the products have other sizes
            close = np.isclose(values, wanted, atol=1e-3, equal_nan=True)
            assert close.mean() > 0.995
            if name != "confidence":
                assert file.nodata == 255
                assert file.colormap(1)[1][:3] == (0, 114, 178)
                np.testing.assert_array_equal(values == 255, cube.isnull().any("band").values)
    assert hr.open_map(out / "label_with_rejection.tif").attrs["zero_meaning"] == "rejected"
    assert call(*arguments, *options) == 2
    assert "is not empty" in capsys.readouterr().err
    cost = ("--rejection-cost", 0.3, "--overwrite")
    assert call(*arguments, *cost) == 2
    assert "--assume-alike" in capsys.readouterr().err
    assert call(*arguments, *cost, "--assume-alike") == 0
    told = capsys.readouterr().out
    assert "cheapest if a rejected pixel costs 0.3" in told
    assert "Assumed, not measured" in told
    assert "Assumed, not measured" in (out / "explorer.html").read_text("utf-8")
    assert "explorer.html" in (out / "manifest.txt").read_text().splitlines()
    hr.map_scene(cube, files["model"], hr.Goal(fraction=0.2), out=out, overwrite=True)
    assert not (out / "explorer.html").exists()  # it showed the maps before


def test_the_folder_holds_the_returned_maps_and_a_summary_of_them(files, tmp_path) -> None:
    out = tmp_path / "out"
    made = hr.map_scene(files["GTiff"], files["model"], hr.Goal(fraction=0.2), out=out)
    assert made.maps["label"].chunks is not None
    for name in ("label", "label_with_rejection", "confidence"):
        opened = hr.open_map(out / f"{name}.tif")
        assert made.maps[name].dtype == opened.dtype
        np.testing.assert_array_equal(made.maps[name].values, opened.values)
    values = made.maps["label_with_rejection"].values
    np.testing.assert_array_equal(made.maps["rejected"].values, values == 0)
    summary = tomllib.loads((out / "summary.toml").read_text())
    assert summary["pixels_rejected"] == (values == 0).sum()
    assert summary["pixels_without_data"] == (values == 255).sum()
    assert summary["rejection"]["asked"] == "fraction"
    kept = {row["value"]: row["pixels_kept"] for row in summary["classes"]}
    assert kept == {value: (values == value).sum() for value in range(1, 6)}
    assert summary["classes"][0]["hectares_kept"] == pytest.approx(kept[1] * 0.09)
    names = {path.name for path in out.iterdir()}
    labels = {
        f"{name}{end}"
        for name in ("label", "label_with_rejection", "flag", "map_filled")
        for end in (".tif", ".tif.aux.xml", ".qml")
    }
    others = {"confidence.tif", "confidence.qml", "summary.toml", "item.json", "manifest.txt"}
    with rasterio.open(out / "map_filled.tif") as file:
        styles = {f"map_filled_{band}.qml" for band in file.descriptions[1:]}
    assert names == {*others, *labels, *styles}


def test_bad_input_is_one_line_and_leaves_nothing(monkeypatch, capsys, files, tmp_path) -> None:
    monkeypatch.setattr("hsreject.mapping.blocks.SECONDS_TO_CONNECT", 0.5)
    usual = {"--model": files["model"], "--out": tmp_path / "out", "--fraction": 0.1}
    for changes, message in (
        ({"--fraction": None}, "exactly one of fraction, threshold, accuracy"),
        ({"--fraction": "1.5"}, "[0, 1]"),
        ({"--model": "nothing.skops"}, "nothing.skops does not exist"),
        ({"SCENE": "nothing.tif"}, "nothing.tif"),
        ({"--memory": "plenty"}, "like '2GB'"),
        ({"--match-bands": "any"}, "exact, nearest, interpolate"),
        ({"--cluster": "tcp://127.0.0.1:1"}, "no dask scheduler"),
    ):
        options = {**usual, **changes}
        scene = options.pop("SCENE", files["GTiff"])
        given = [part for option in options.items() if option[1] is not None for part in option]
        assert call("map", scene, *given) == 2
        told = capsys.readouterr().err.splitlines()
        assert message in told[-1]
        assert [line for line in told if "hsreject:" in line] == told[-1:]
        assert not (tmp_path / "out").exists()


def test_a_foreign_scene_is_refused_until_allowed(capsys, files, cube, tmp_path) -> None:
    path = write_scene(10_000 * cube, tmp_path / "scaled.tif", "GTiff")
    arguments = ("map", path, "--model", files["model"], "--out", tmp_path / "out")
    assert call(*arguments, "--fraction", 0.1) == 2
    told = capsys.readouterr().err
    assert "divide the scene by 10,000" in told
    assert "--foreign allow" in told
    assert not (tmp_path / "out").exists()
    assert call(*arguments, "--fraction", 0.1, "--foreign", "allow") == 0
    summary = tomllib.loads((tmp_path / "out" / "summary.toml").read_text())
    assert summary["similarity"]["novel_share"] == 1


@pytest.mark.filterwarnings("default::hsreject.errors.GuessWarning")
def test_arrays_are_mapped_as_the_options_say_and_a_guess_is_one_line(
    capsys, files, cube, tmp_path
) -> None:
    values = cube.fillna(cube.mean()).values
    savemat(tmp_path / "scene.mat", {"other": values[:3], "scene": values})
    out = tmp_path / "out"
    options = ("--variable", "scene", "--band-axis", 0, "--fraction", 0.2, "--out", out)
    arguments = (tmp_path / "scene.mat", "--model", files["model"], *options)
    assert call("map", *arguments) == 0
    (told,) = [line for line in capsys.readouterr().err.splitlines() if "wavelengths" in line]
    assert told.startswith("hsreject: The scene does not say its wavelengths; its 12 bands")
    with rasterio.open(out / "label.tif") as file:
        assert file.shape == cube.shape[1:]
    assert call("map", *arguments, "--overwrite", "--variable", "nothing") == 2
    assert "'nothing'" in capsys.readouterr().err.splitlines()[-1]
