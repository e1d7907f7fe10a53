"""Scenes by name: small MATLAB files from a server on this machine stand in for the large ones."""

import hashlib
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import scipy.io

import hsreject as hr
from hsreject import schema
from hsreject.datasets import scenes as module
from hsreject.errors import FileError, InputError


class Quiet(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer; what is called broken comes by half."""
        if not self.path.endswith("broken.mat"):
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", "7")
        self.end_headers()
        self.wfile.write(b"con")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path):
    """A folder and the address under which a server on this machine shows it."""
    shown = tmp_path / "shown"
    shown.mkdir()
    running = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(shown)))
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield shown, f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    thread.join()
    running.server_close()


def remote(path: Path, address: str) -> module.RemoteFile:
    content = path.read_bytes()
    return module.RemoteFile(
        f"{address}/{path.name}", hashlib.sha256(content).hexdigest(), len(content)
    )


@pytest.fixture
def small_salinas(server, monkeypatch):
    """Salinas-A with 4 x 5 pixels and 3 bands, listed in place of the real one."""
    shown, address = server
    cube = np.arange(60, dtype=np.int16).reshape(4, 5, 3)
    labels = np.array([[0, 1, 10, 11, 12]] * 4, dtype=np.uint8)
    scipy.io.savemat(shown / "Small.mat", {"small": cube})
    scipy.io.savemat(shown / "Small_gt.mat", {"small_gt": labels})
    small = replace(
        module.scenes()["salinas-a"],
        cube=remote(shown / "Small.mat", address),
        labels=remote(shown / "Small_gt.mat", address),
    )
    monkeypatch.setitem(module.scenes(), "salinas-a", small)
    return shown, cube, labels


@pytest.mark.parametrize("size", [{"rows": 10**400}, {"columns": 10**8}, {"n_bands": 10**12}])
def test_a_synthetic_scene_larger_than_memory_is_refused(size) -> None:
    with pytest.raises(InputError, match="larger than memory"):
        hr.synthetic_scene(**size)


def test_a_scene_is_fetched_once_and_loaded(tmp_path, small_salinas) -> None:
    shown, cube, labels = small_salinas
    told = []
    got, reference = hr.load_scene(
        "Salinas_A", folder=tmp_path / "kept", progress=lambda *what: told.append(what)
    )
    assert got.dims == schema.CUBE_DIMS
    assert got.dtype == np.int16
    np.testing.assert_array_equal(got.values, cube.transpose(2, 0, 1))
    np.testing.assert_array_equal(reference.values, labels)
    assert schema.class_table(reference).name_of(10) == "Corn_senesced_green_weeds"
    size = (shown / "Small.mat").stat().st_size
    assert told[0] == ("Small.mat", 0, size)
    assert ("Small.mat", size, size) in told
    for path in shown.iterdir():
        path.unlink()
    again, _ = hr.load_scene("salinas-a", folder=tmp_path / "kept")  # from the folder now
    np.testing.assert_array_equal(again, got)


def test_files_put_there_by_hand_are_used(tmp_path, small_salinas, monkeypatch) -> None:
    shown, *_ = small_salinas
    kept = tmp_path / "kept"
    shown.rename(kept)
    monkeypatch.setenv("HSREJECT_DATA", str(kept))
    assert module.fetch_scene("salinas-a") == (kept / "Small.mat", kept / "Small_gt.mat")


def test_a_file_that_was_changed_is_refused_and_left_alone(tmp_path, small_salinas) -> None:
    (tmp_path / "Small.mat").write_bytes(b"something else")
    with pytest.raises(FileError, match=r"is not the published Small.mat: it has 14 bytes"):
        module.fetch_scene("salinas-a", folder=tmp_path)
    assert (tmp_path / "Small.mat").read_bytes() == b"something else"


@pytest.mark.parametrize(
    "failure",
    ["404", "another file", "did not send it .*ncomplete", "did not send it .*Max retries"],
)
def test_what_cannot_be_downloaded_says_how_to_get_it(
    tmp_path, small_salinas, monkeypatch, failure
) -> None:
    shown, *_ = small_salinas
    known = module.scenes()["salinas-a"]
    file = known.cube
    if failure == "404":
        (shown / "Small.mat").unlink()
    elif failure == "another file":
        (shown / "Small.mat").write_bytes(b"other content")
    elif "ncomplete" in failure:  # the server breaks off
        file = replace(file, url=file.url.replace("Small", "broken"))
    else:
        file = replace(file, url="http://127.0.0.1:9/Small.mat")  # discard port: nobody listens
    monkeypatch.setitem(module.scenes(), "salinas-a", replace(known, cube=file))
    kept = tmp_path / "kept"
    with pytest.raises(FileError, match=failure) as caught:
        hr.load_scene("salinas-a", folder=kept)
    for part in (file.url, module.PAGE, str(kept), file.sha256, f"{file.size} bytes"):
        assert part in str(caught.value)
    assert list(kept.iterdir()) == []


def test_what_is_in_the_way_is_named(tmp_path, small_salinas) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileError, match="Cannot make the folder"):
        hr.load_scene("salinas-a", folder=tmp_path / "file" / "kept")
    (tmp_path / "Small.mat").mkdir()
    with pytest.raises(FileError, match=r"Small.mat is a folder"):
        hr.load_scene("salinas-a", folder=tmp_path)


def test_the_registry_is_complete() -> None:
    known = module.scenes()
    names = "indian-pines pavia-university pavia-centre salinas salinas-a ksc botswana"
    assert list(known) == names.split()
    listed = (Path(__file__).parents[2] / "data" / "README.md").read_text("utf-8")
    files = [file for scene in known.values() for file in (scene.cube, scene.labels)]
    assert len({file.sha256 for file in files}) == len(files) == 14
    assert all(len(file.sha256) == 64 and file.size > 500 for file in files)
    for file in files:
        # the wiki of the collection files uploads under the first digits of the MD5 of their name
        digits = hashlib.md5(file.name.encode(), usedforsecurity=False).hexdigest()
        assert file.url.endswith(f"/uploads/{digits[0]}/{digits[:2]}/{file.name}")
        assert f"{file.name} | {file.size} | `{file.sha256}`" in listed
    assert [len(scene.classes) for scene in known.values()] == [16, 9, 9, 16, 6, 13, 14]


def test_unknown_scenes_are_named() -> None:
    with pytest.raises(InputError, match=r"Unknown scene 'salinos'.*Did you mean 'salinas'"):
        hr.load_scene("salinos")


def test_a_file_with_several_arrays_is_refused(tmp_path, small_salinas) -> None:
    shown, *_ = small_salinas
    scipy.io.savemat(shown / "Small.mat", {"a": np.zeros((2, 2, 2)), "b": np.zeros((3, 3))})
    known = module.scenes()["salinas-a"]
    address = known.cube.url.rpartition("/")[0]
    module.scenes()["salinas-a"] = replace(known, cube=remote(shown / "Small.mat", address))
    with pytest.raises(FileError, match=r"must hold one array .*\(2, 2, 2\), \(3, 3\)"):
        hr.load_scene("salinas-a", folder=tmp_path)


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hsreject", "fetch", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={"PATH": "", "COLUMNS": "120", **environment},
    )


def test_the_command_lists_and_refuses(tmp_path) -> None:
    listed = command(HSREJECT_DATA=str(tmp_path))
    assert listed.returncode == 0
    assert "pavia-university" in listed.stdout
    assert str(tmp_path) in listed.stdout
    unknown = command("moon")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("hsreject: Unknown scene 'moon'")
    assert "Traceback" not in unknown.stderr


def test_the_command_fetches(tmp_path, small_salinas, capsys) -> None:
    from hsreject.cli import app  # noqa: PLC0415

    app(["fetch", "salinas-a", "--folder", str(tmp_path)], standalone_mode=False)
    said = capsys.readouterr()
    assert said.out.split() == [str(tmp_path / "Small.mat"), str(tmp_path / "Small_gt.mat")]
    assert "Small.mat done" in said.err
