"""Scenes by URL, from a web server on the loopback address."""

import os
import re
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import geopandas as gpd
import h5py
import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import FileError, shown
from hsreject.io import remote
from hsreject.io.products.backend import HsrejectBackend
from hsreject.io.remote import as_path
from hsreject.progress import reporting_reads
from tests.cli.calling import call
from tests.cli.test_map import write_scene
from tests.io.products.writers import reflectance, write_emit, write_enmap
from tests.io.web_server import serving
from tests.io.writers import random_cube, write_envi, write_with_gdal
from tests.mapping.scenes import CONFIG, larger_scene

CUBE = random_cube("int16", (20, 256, 256))
GLT = np.meshgrid(np.arange(1, 9), np.arange(1, 6), indexing="ij")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a server of `tmp_path`."""
    with serving(tmp_path) as address:
        yield address


def bytes_sent(url: str) -> int:
    with urlopen(f"{url}/sent") as answer:
        return int(answer.read())


def test_of_a_geotiff_only_a_part_is_read(tmp_path, url) -> None:
    path = write_with_gdal(tmp_path / "scene.tif", CUBE, tiled=True, blockxsize=64, blockysize=64)
    lazy = hr.open_scene(f"{url}/good/scene.tif", chunks={"y": 64, "x": 64})
    np.testing.assert_array_equal(lazy[:, :64, :64].values, CUBE[:, :64, :64])
    assert bytes_sent(url) < path.stat().st_size / 2
    np.testing.assert_array_equal(hr.open_scene(f"/vsicurl/{url}/good/scene.tif").values, CUBE)


def test_envi_by_url(tmp_path, url) -> None:
    path = write_envi(tmp_path, CUBE, fields={"wavelength": "{" + ",".join(["500"] * 20) + "}"})
    cube = hr.open_scene(f"{url}/good/{path.name}")
    xr.testing.assert_identical(cube, hr.open_scene(path))
    with pytest.raises(FileError, match="data file"):
        hr.open_scene(f"{url}/good/{path.with_suffix('.hdr').name}")


def test_a_product_by_url(tmp_path, url) -> None:
    values = reflectance((40, 300, 100))
    path = write_emit(tmp_path / "emit.nc", values, GLT, chunks=(30, 100, 40))
    lazy = hr.open_scene(f"{url}/good/emit.nc", chunks={"y": 30})
    np.testing.assert_array_equal(lazy[:, :30].values, values[:, :30])
    assert bytes_sent(url) < path.stat().st_size / 2
    np.testing.assert_array_equal(
        xr.open_dataarray(f"{url}/good/emit.nc", engine=HsrejectBackend).values, values
    )


def test_maps_of_a_scene_by_url_follow_its_lookup_table(tmp_path, url) -> None:
    write_emit(tmp_path / "emit.nc", reflectance((4, 8, 5)), GLT)
    cubes = [hr.open_scene(place) for place in (tmp_path / "emit.nc", f"{url}/good/emit.nc")]
    for number, cube in enumerate(cubes):
        hr.write_map(cube[0], tmp_path / f"{number}.tif")
    xr.testing.assert_equal(*(hr.open_scene(tmp_path / f"{n}.tif") for n in (0, 1)))


def test_a_product_of_several_files_by_url(tmp_path, url) -> None:
    image, _ = write_enmap(tmp_path, np.abs(CUBE[:6, :20, :20]))
    cube = hr.open_scene(f"{url}/good/{image.name}")
    np.testing.assert_array_equal(cube.values, hr.open_scene(image).values)


def test_what_goes_wrong_is_one_sentence(tmp_path, url) -> None:
    write_with_gdal(tmp_path / "scene.tif", CUBE)
    write_emit(tmp_path / "emit.nc", reflectance((40, 100, 100)), chunks=(10, 100, 40))
    with pytest.raises(FileError, match=f"{url}/good/nothing.tif does not exist"):
        hr.open_scene(f"{url}/good/nothing.tif")
    (tmp_path / "scene.mat").write_bytes(b"MATLAB")
    with pytest.raises(FileError, match="from disk only"):
        hr.open_scene(f"{url}/good/scene.mat")
    for name in ("scene.tif", "emit.nc"):
        with pytest.raises(FileError, match=f"{url}/broken/{name}.*download"):
            hr.open_scene(f"{url}/broken/{name}")
        with pytest.raises(FileError, match="byte ranges"):
            hr.open_scene(f"{url}/whole/{name}")
    with pytest.raises(FileError, match=r"127\.0\.0\.1:9/scene\.tif cannot be opened"):
        hr.open_scene("http://127.0.0.1:9/scene.tif")


@pytest.mark.parametrize("name", ["scene.tif", "emit.nc", "store.zarr"])
@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_server_that_refuses_is_quoted(url, name, status) -> None:
    with pytest.raises(FileError, match=str(status)):
        hr.open_scene(f"{url}/{status}/{name}")


@pytest.mark.parametrize("how", ["", "/vsicurl/"])
@pytest.mark.parametrize("name", ["scene.tif", "emit.nc"])
def test_a_silent_server_is_not_waited_for(monkeypatch, url, how, name) -> None:
    monkeypatch.setattr(remote, "SILENCE", 1)
    with pytest.raises(FileError, match=f"{url}/silent/{name} cannot be (opened|read)"):
        hr.open_scene(f"{how}{url}/silent/{name}")


@pytest.mark.parametrize(("name", "n_rows"), [("scene.tif", 256), ("emit.nc", 300)])
def test_reading_by_url_is_reported(tmp_path, url, name, n_rows) -> None:
    write_with_gdal(tmp_path / "scene.tif", CUBE, tiled=True, blockxsize=64, blockysize=64)
    write_emit(tmp_path / "emit.nc", reflectance((40, 300, 100)), chunks=(30, 100, 40))
    reports: list[tuple[str, float, float | None]] = []
    with reporting_reads(lambda *report: reports.append(report)):
        hr.open_scene(f"{url}/good/{name}")
    rows = [done for _, done, _ in reports]
    assert len(rows) >= 2
    assert rows == sorted(rows)
    assert reports[-1] == ("reading pixels", n_rows, n_rows)


def test_labels_and_maps_by_url(tmp_path, url) -> None:
    label = xr.DataArray(np.array([[0, 1], [2, 255]], "uint8"), dims=("y", "x"))
    hr.write_map(label, tmp_path / "map.tif", classes=["soil", "water"])
    for open_ in (hr.open_map, hr.open_labels):
        xr.testing.assert_identical(open_(f"{url}/good/map.tif"), open_(tmp_path / "map.tif"))


def test_the_command_line(tmp_path, url, capsys) -> None:
    write_with_gdal(tmp_path / "scene.tif", CUBE)
    assert call("info", f"{url}/good/scene.tif") == 0
    assert "256 rows x 256 columns x 20 bands" in capsys.readouterr().out
    for name in ("good/nothing.tif", "broken/scene.tif", "whole/scene.tif"):
        assert call("info", f"{url}/{name}") == 2
        assert capsys.readouterr().err.startswith(f"hsreject: {url}/{name}")


@pytest.mark.filterwarnings("ignore::hsreject.errors.GuessWarning")  # bands without wavelengths
def test_scenes_are_mapped_by_url(tmp_path, url, capsys) -> None:
    config = {
        "scene": {"name": "synthetic", "rows": 32, "columns": 32},
        "features": [{"name": "pca", "n_components": 5}],
        "classifier": "lda",
    }
    hr.save_model(hr.train(config), tmp_path / "model.skops")
    scene, _ = hr.synthetic_scene(rows=32, columns=32)
    for name in ("a.tif", "b.tif"):
        write_with_gdal(tmp_path / name, scene.values)
    asked = ["map", f"{url}/good/a.tif?token=1", f"{url}/good/b.tif", f"{url}/good/missing.tif"]
    asked += ["--model", str(tmp_path / "model.skops"), "--out", str(tmp_path / "out")]
    asked += ["--fraction", "0.1", "--foreign", "allow", "--match-bands", "exact"]
    assert call(*asked) == 1
    told = capsys.readouterr().out
    assert "2 of 3 scenes" in told
    assert f"{url}/good/missing.tif: failed" in told
    assert (tmp_path / "out" / "a" / "label.tif").exists()
    assert call(*asked) == 1
    assert capsys.readouterr().out.count("finished before") == 2
    os.utime(tmp_path / "a.tif", (1, 1))  # it has changed
    assert call(*asked) == 1
    assert capsys.readouterr().out.count("finished before") == 1


SECRET = re.compile(rb"top-secret|open-sesame")


@pytest.fixture
def secret_url(url: str) -> str:
    """The address of the same server with a user and a password."""
    return url.replace("//", "//somebody:top-secret@") + "/good"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://a:b@host:80/x.tif?sig=a/'b'c", "https://host:80/x.tif"),
        (Path("https://a:b@host/x.tif"), "https://host/x.tif"),
        ("'/vsicurl/https://a@host/x?k=1' failed. Why?", "'/vsicurl/https://host/x' failed. Why?"),
        ("C:\\maps\\x.tif, what?", "C:\\maps\\x.tif, what?"),
        ("s3://bucket/user@home.tif", "s3://bucket/user@home.tif"),
    ],
)
def test_what_people_see_of_a_url_holds_no_secret(text, expected) -> None:
    assert shown(text) == expected
    assert str(FileError(f"{text} is missing.")) == f"{expected} is missing."


def test_spaces_do_not_hide_a_query() -> None:
    assert shown(as_path("https://host/my scene.tif?key=a b")) == "https://host/my%20scene.tif"


def test_secrets_stay_out_of_maps_and_continuing_works(tmp_path, secret_url, model, capsys) -> None:
    for name in ("a.tif", "b.tif"):
        write_scene(larger_scene(64, 64), tmp_path / name, "GTiff")
    hr.save_model(model, tmp_path / "model.skops")
    scenes = [
        f"{secret_url}/{name}?token=open-sesame" for name in ("a.tif", "b.tif", "missing.tif")
    ]
    asked = ["--model", tmp_path / "model.skops", "--fraction", 0.1]
    assert call("map", *scenes, *asked, "--out", tmp_path / "out") == 1
    assert call("map", *scenes, *asked, "--out", tmp_path / "out") == 1
    told = "".join(capsys.readouterr())
    assert told.count("finished before") == 2
    assert "/good/missing.tif does not exist" in told
    assert (leaks(tmp_path / "out"), SECRET.findall(told.encode())) == ([], [])


def test_secrets_stay_out_of_runs_and_continuing_works(tmp_path, secret_url) -> None:
    cube, labels = hr.synthetic_scene(rows=32, columns=32, n_bands=12, noise=0.4)
    # whose maps are made with a table in the file
    write_emit(tmp_path / "emit.nc", cube.values, np.indices((32, 32))[:, ::-1] + 1)
    np.save(tmp_path / "labels.npy", labels.values)
    scene = {"name": "files", "path": f"{secret_url}/emit.nc?token=open-sesame"}
    config = {**CONFIG, "scene": {**scene, "labels": str(tmp_path / "labels.npy")}}
    made = hr.run(config, out=tmp_path / "out")
    again = hr.run(config, out=tmp_path / "out")  # from its stages
    xr.testing.assert_equal(made["label"], again["label"])
    assert (
        call(
            "next",
            tmp_path / "out",
            "--scene",
            scene["path"],
            "--out",
            tmp_path / "out" / "next.gpkg",
        )
        == 0
    )
    assert (tmp_path / "out" / "config.toml").exists()
    assert leaks(tmp_path / "out") == []


def leaks(folder: Path) -> list[str]:
    """Return the files in a folder that hold a secret, also inside of a zip file."""

    def contents(path: Path) -> Iterator[bytes]:
        yield path.read_bytes()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                yield from map(archive.read, archive.namelist())

    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [path.name for path in files if any(map(SECRET.search, contents(path)))]


def test_secrets_stay_out_of_models_pages_and_evaluations(
    tmp_path, secret_url, monkeypatch, capsys
) -> None:
    cube, labels = hr.synthetic_scene(rows=32, columns=32, n_bands=12, noise=0.4)
    write_scene(cube, tmp_path / "scene.tif", "GTiff")
    labels = labels.where(labels > 0, 1).assign_attrs(labels.attrs)
    hr.write_map(labels, tmp_path / "labels.tif")
    hr.write_map(labels.astype("float32"), tmp_path / "confidence.tif")
    hr.draw_sample(labels, 12, seed=0).write(tmp_path / "sample.gpkg")
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    scene, reference, confidence = (
        f"{secret_url}/{name}.tif?file=a.b/c&token=open-sesame"
        for name in ("scene", "labels", "confidence")
    )
    config = {**CONFIG, "scene": {"name": "files", "path": scene, "labels": reference}}
    hr.save_model(hr.train(config), "model.skops")
    judged = ("--reference", reference, "--labels", reference, "--confidence", confidence)
    assert call("evaluate", *judged, "--out", "evaluation") == 0
    assert call("explore", *judged, "--scene", scene, "--out", "explorer.html") == 0
    assert call("label", "../sample.gpkg", "--scene", scene, "--out", "label.html") == 0
    assert call("info", scene) == 0
    assert leaks(tmp_path / "out") == []
    assert call("init", scene, reference) == 0
    # a configuration is to run: its addresses are whole, and nothing else is
    lines = Path("scene.toml").read_text().splitlines()
    assert [line[:6] for line in lines if SECRET.search(line.encode())] == ["path =", "labels"]
    assert SECRET.findall("".join(capsys.readouterr()).encode()) == []


@pytest.fixture(scope="module")
def model() -> hr.MapModel:
    return hr.train(CONFIG)


def test_a_map_whose_server_breaks_off_goes_on(tmp_path, url, model) -> None:
    write_scene(larger_scene(600, 128), tmp_path / "scene.tif", "GTiff")
    mood = tmp_path / "bad mood"
    # so little memory that it is not read as a whole before the first block is solved
    resources = hr.Resources(block_size=40, n_workers=1, memory="457MB")
    asked = {"goal": hr.Goal(fraction=0.1), "resources": resources, "out": tmp_path / "out"}

    def spoil(stage: str, done: float, _total: float | None) -> None:
        if stage == "mapping" and done and list((tmp_path / "out").glob(".unfinished.*/*.npy")):
            mood.touch()

    place = f"{url}/moody/scene.tif"
    with pytest.raises(FileError, match=r"scene.tif cannot be read.*Check the connection"):
        hr.map_scene(place, model, progress=spoil, **asked)
    mood.unlink()
    made = hr.map_scene(place, model, **asked)
    assert 0 < made.summary.n_continued < len(made.summary.blocks)
    whole = hr.map_scene(tmp_path / "scene.tif", model, **asked | {"out": None})
    np.testing.assert_array_equal(made.maps["label"], whole.maps["label"])


def test_a_scene_of_a_server_that_names_no_versions_is_mapped(tmp_path, url, model) -> None:
    write_scene(larger_scene(64, 64), tmp_path / "scene.tif", "GTiff")
    place = f"{url}/unversioned/scene.tif"
    made = hr.map_scene(place, model, hr.Goal(fraction=0.1), out=tmp_path / "out")
    expected = hr.map_scene(tmp_path / "scene.tif", model, hr.Goal(fraction=0.1))
    np.testing.assert_array_equal(made.maps["label"], expected.maps["label"])


def test_a_scene_of_a_configuration_by_url(tmp_path, url) -> None:
    scene, labels = hr.synthetic_scene(rows=32, columns=32)
    write_scene(scene, tmp_path / "scene.tif", "GTiff")
    hr.write_map(labels, tmp_path / "labels.tif")
    results = []
    for number, place in enumerate((f"{url}/good", tmp_path)):
        config = tmp_path / f"{number}.toml"
        asked = ("init", f"{place}/scene.tif", f"{place}/labels.tif", "--out", config)
        assert call(*asked) == 0
        assert f'path = "{place}/scene.tif"' in config.read_text()
        assert f'labels = "{place}/labels.tif"' in config.read_text()
        results.append(hr.run({**CONFIG, "scene": tomllib.loads(config.read_text())["scene"]}))
    made, expected = results
    xr.testing.assert_equal(made["label"], expected["label"])


def test_a_scene_in_an_archive(tmp_path, model, capsys) -> None:
    write_scene(larger_scene(64, 64), tmp_path / "scene.tif", "GTiff")
    with zipfile.ZipFile(tmp_path / "scenes.zip", "w") as archive:
        archive.write(tmp_path / "scene.tif", "scene.tif")
    hr.save_model(model, tmp_path / "model.skops")
    for number, name in enumerate(("scene.tif", "scenes.zip")):
        asked = ("map", tmp_path / name, "--model", tmp_path / "model.skops")
        assert call(*asked, "--fraction", 0.1, "--out", tmp_path / str(number)) == 0
    first, second = (hr.open_map(tmp_path / str(n) / "label.tif") for n in (0, 1))
    xr.testing.assert_identical(first, second)


def test_s3(tmp_path, url, monkeypatch) -> None:
    """The server stands for S3: whoever reads an object by parts asks it as any web server."""
    values = reflectance((4, 8, 5))
    write_emit(tmp_path / "emit.nc", values, GLT)
    path = write_with_gdal(tmp_path / "scene.tif", CUBE)
    image, _ = write_enmap(tmp_path, np.abs(CUBE[:6, :20, :20]))  # a product of several files
    said = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": url}
    said |= {"AWS_S3_ENDPOINT": url.removeprefix("http://"), "AWS_REGION": "us-east-1"}
    said |= {"AWS_HTTPS": "NO", "AWS_VIRTUAL_HOSTING": "FALSE"}
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    np.testing.assert_array_equal(hr.open_scene("s3://good/emit.nc").values, values)
    for place in ("s3://good/scene.tif", "/vsis3/good/scene.tif"):
        xr.testing.assert_identical(hr.open_scene(place), hr.open_scene(path))
    xr.testing.assert_identical(hr.open_scene(f"s3://good/{image.name}"), hr.open_scene(image))


def test_a_damaged_heap_is_found_by_url(tmp_path, url) -> None:
    """HDF5 would read it for ever."""
    with h5py.File(tmp_path / "heap.h5", "w") as file:
        file.attrs["names"] = np.array(["one", "two"], dtype=h5py.string_dtype())
        file["cube"] = np.ones((3, 4, 5))
    raw = bytearray((tmp_path / "heap.h5").read_bytes())
    entry = raw.index(b"GCOL") + 16
    raw[entry : entry + 16] = bytes(16)
    (tmp_path / "heap.h5").write_bytes(raw)
    with pytest.raises(FileError, match="damaged"):
        hr.open_scene(f"{url}/good/heap.h5", variable="cube", band_axis=0)


def test_a_url_is_a_path_that_keeps_its_slashes() -> None:
    for url in ("https://host/a/b.tif", "s3://bucket/b.tif"):
        path = as_path(Path(url))
        assert str(path) == url
        assert (path.name, path.stem, path.suffix) == ("b.tif", "b", ".tif")
        assert str(path.with_name("b.hdr")) == url.replace("b.tif", "b.hdr")
    assert type(as_path("folder/b.tif")) is type(Path())
    signed = as_path("https://host/a/b.tif?key=1/2/s3")
    assert (signed.name, signed.suffix) == ("b.tif", ".tif")
    assert str(signed) == "https://host/a/b.tif?key=1%2F2%2Fs3"


@pytest.mark.parametrize("ending", ["gpkg", "geojson", "csv"])
def test_vector_labels_by_url(tmp_path, url, ending) -> None:
    scene = hr.open_scene(write_with_gdal(tmp_path / "scene.tif", CUBE))
    x, y = scene.x.values[[3, 200]], scene.y.values[[5, 100]]
    frame = gpd.GeoDataFrame({"kind": ["soil", "water"]}, geometry=gpd.points_from_xy(x, y))
    path = tmp_path / f"points.{ending}"
    if ending == "csv":
        frame.drop(columns="geometry").assign(x=x, y=y).to_csv(path, index=False)
    else:
        frame.set_crs(scene.rio.crs).to_crs(4326).to_file(path)
    labels = hr.open_labels(f"{url}/good/{path.name}", like=scene, attribute="kind")
    assert labels.values[[5, 100], [3, 200]].tolist() == [1, 2]
    assert (labels.values > 0).sum() == 2
