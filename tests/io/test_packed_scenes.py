"""Folders and archives, as downloads come; archives of strangers stay where they are put."""

import io
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import FileError
from tests.io.products.writers import reflectance, write_emit, write_emit_mask, write_enmap
from tests.io.writers import random_cube, write_with_gdal


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that archives are unpacked in."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.mark.parametrize("ending", ["", "zip", "tar", "gztar"])
@pytest.mark.parametrize("product", ["EnMAP", "EMIT", "GeoTIFF"])
def test_a_product_in_its_folder_or_its_archive(tmp_path: Path, product: str, ending: str) -> None:
    folder = tmp_path / "download" / "scene"
    folder.mkdir(parents=True)
    counts = random_cube("int16", (4, 6, 5))
    if product == "EnMAP":
        path, _ = write_enmap(folder, counts, masks={"CLOUD": counts[0] > 60})
    elif product == "EMIT":
        path = write_emit(folder / "EMIT_L2A_RFL_001.nc", reflectance())
        write_emit_mask(folder / "EMIT_L2A_MASK_001.nc", np.ones((1, 5, 4)), ["Cloud flag"])
    else:
        path = write_with_gdal(folder / "a.tif", counts)
    expected = hr.open_scene(path, masks=False).values
    given = folder.parent
    if ending:
        given = Path(shutil.make_archive(str(tmp_path / "packed"), ending, folder.parent))
    for chunks in (None, {"y": 2}):
        found = hr.open_scene(given, masks=False, chunks=chunks).values
        np.testing.assert_array_equal(found, expected)


def test_a_folder_of_several_scenes_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="without a scene"):
        hr.open_scene(tmp_path)
    for name in ("a.tif", "b.tif"):
        write_with_gdal(tmp_path / name, random_cube("int16", (4, 6, 5)))
    with pytest.raises(FileError, match=r"a\.tif, b\.tif"):
        hr.open_scene(tmp_path)


# Archives of strangers.


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> object:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, size
    return info


def way_out(archive: tarfile.TarFile, secret: Path) -> None:
    """Nested folders of 247 letters with one-letter links: Python's own filter loses its way."""
    path, steps, long = "", "", "d" * 247
    for letter in "abcdefghijklmnop":
        archive.addfile(entry(path + long, tarfile.DIRTYPE))
        archive.addfile(entry(path + letter, tarfile.SYMTYPE, long))
        path, steps = f"{path}{long}/", f"{steps}{letter}/"
    archive.addfile(entry(f"{steps}{'l' * 254}", tarfile.SYMTYPE, "../" * 16))
    outside = f"{steps}{'l' * 254}" + "/.." * 12 + str(secret.parent)
    archive.addfile(entry("escape", tarfile.SYMTYPE, outside))
    archive.addfile(entry("link", tarfile.LNKTYPE, f"escape/{secret.name}"))
    archive.addfile(entry("link", size=7), io.BytesIO(b"changed"))


ARCHIVES: dict[str, Callable[[tarfile.TarFile, Path], object]] = {
    "a way out": way_out,
    "a hard link": lambda archive, secret: archive.addfile(
        entry("a", tarfile.LNKTYPE, str(secret))
    ),
    "a link inside": lambda archive, _: archive.addfile(entry("a", tarfile.SYMTYPE, "b.tif")),
    "a device": lambda archive, _: archive.addfile(entry("a", tarfile.CHRTYPE)),
    "a pipe": lambda archive, _: archive.addfile(entry("a", tarfile.FIFOTYPE)),
    "a folder above": lambda archive, secret: archive.addfile(entry(f"../../{secret.name}")),
    "a long name": lambda archive, _: archive.addfile(entry("a" * 300)),
    "a long path": lambda archive, _: archive.addfile(entry("folder/" * 200 + "a")),
    "a long header": lambda archive, _: archive.addfile(entry("a" * 10**6)),
}


@pytest.mark.parametrize("kind", ARCHIVES)
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_writes_nowhere_else(
    tmp_path: Path, temporary: Path, kind: str, mode: str
) -> None:
    secret, path = tmp_path / "secret.txt", tmp_path / "packed.tar"
    secret.write_text("mine")
    with tarfile.open(path, mode) as archive:
        archive.addfile(entry("a.tif", size=3), io.BytesIO(b"abc"))
        ARCHIVES[kind](archive, secret)
    for open_ in (hr.open_scene, hr.describe, hr.open_labels, hr.open_map):
        with pytest.raises(FileError, match=r"packed\.tar ") as refused:
            open_(path)
        assert str(temporary) not in str(refused.value)
    assert secret.read_text() == "mine"
    assert not list(temporary.iterdir())


def test_a_zip_holds_no_links_and_no_names_above(tmp_path: Path, temporary: Path) -> None:
    link = zipfile.ZipInfo("a.tif")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    for number, name in enumerate((link, "../a.tif", "a/../../b.tif", "..\\a.tif", "a" * 300)):
        path = tmp_path / f"{number}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, "/etc/passwd")
        with pytest.raises(FileError, match=rf"{number}\.zip holds"):
            hr.open_scene(path)
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("n_files", [1, 60])
def test_an_archive_that_unpacks_without_end_is_refused(
    tmp_path: Path, temporary: Path, n_files: int
) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for number in range(n_files):  # Python reads no more than the directory claims
            archive.writestr(f"{number}.tif", b"")
            archive.filelist[-1].file_size = 600_000_000 // n_files
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as archive:
        archive.fileobj.write(entry("a.tif", size=600_000_000).tobuf())
    for name in ("packed.zip", "packed.tar.gz"):
        with pytest.raises(FileError, match=f"{name} would unpack to"):
            hr.open_scene(tmp_path / name)
    assert not list(temporary.iterdir())


def test_messages_name_the_archive_and_not_where_it_is_unpacked(
    tmp_path: Path, temporary: Path
) -> None:
    (tmp_path / "a.tif").write_bytes(b"II*\0" + bytes(20))
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.write(tmp_path / "a.tif", "inside/a.tif")
    for open_ in (hr.open_scene, hr.describe, hr.open_labels, hr.open_map):
        with pytest.raises(FileError, match=r"^packed\.zip.inside.a\.tif ") as refused:
            open_(tmp_path / "packed.zip")
        assert str(temporary) not in str(refused.value)


@pytest.mark.parametrize("ending", ["zip", "gztar"])
def test_progress_of_unpacking(tmp_path: Path, ending: str) -> None:
    (tmp_path / "folder").mkdir()
    write_with_gdal(tmp_path / "folder" / "a.tif", random_cube("int16", (40, 60, 50)))
    packed = Path(shutil.make_archive(str(tmp_path / "packed"), ending, tmp_path / "folder"))
    calls: list[tuple[str, float, float | None]] = []
    hr.describe(packed, progress=lambda *call: calls.append(call))
    unpacking = [call for call in calls if call[0].startswith("unpacking")]
    size = packed.stat().st_size
    assert {(stage, total) for stage, _, total in unpacking} == {
        (f"unpacking {size / 1e6:.1f} MB", size)
    }
    done = [one for _, one, _ in unpacking]
    assert done == sorted(done)
    assert size / 2 < done[-1] <= size


@pytest.mark.posix
def test_nothing_stays_behind_after_a_kill(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("a.tif", b"abc")
    (tmp_path / "temporary").mkdir()
    (tmp_path / "temporary" / "somebody's").mkdir()

    def left(ending: str) -> list[str]:
        program = f"""
import os, tempfile
from pathlib import Path
tempfile.tempdir = {str(tmp_path / "temporary")!r}
from hsreject.io.packed_scenes import unpacked
print(os.listdir(unpacked(Path({str(tmp_path / "packed.zip")!r}), (0, 0))))
print(len(os.listdir(tempfile.tempdir)))
{ending}
"""
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert done.stdout == "['a.tif']\n2\n", done.stderr
        return sorted(path.name for path in (tmp_path / "temporary").iterdir())

    assert len(left("print(end='', flush=True), os.kill(os.getpid(), 9)")) == 2
    assert (
        len(left("print(end='', flush=True), os.kill(os.getpid(), 9)")) == 2
    )  # another one, which removed the first
    assert left("") == ["somebody's"]
