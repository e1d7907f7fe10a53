"""Many scenes with one model: each mapped once, failures collected, one table of what came out."""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from dask.base import tokenize

from hsreject import __version__
from hsreject.errors import FileError, HsrejectError, InputError
from hsreject.files import MANIFEST, check_folder, replacing
from hsreject.io.remote import RemotePath, as_path, is_store, state_of
from hsreject.mapping.map_scene import FILES, SUMMARY_FILE, SceneMap
from hsreject.mapping.map_summary import MapSummary

SUMMARY = "summary.csv"
MAPPED, FINISHED, FAILED = "mapped", "finished before", "failed"

_HEAD = (
    *("scene", "folder", "status", "pixels", "kept_share", "unknown_share", "seconds", "error"),
    "work",  # a token of scene, model and options: the same work is not done twice
)
_SUFFIXES = (
    *(".tif", ".tiff", ".vrt", ".img", ".dat", ".bsq", ".bil", ".bip", ".mat", ".npy"),
    *(".nc", ".h5", ".hdf5", ".he5"),
)

Mapper = Callable[[Path, Path, bool], SceneMap]
"""Maps a scene into a folder; the third argument says that the folder may be overwritten."""


@dataclass(frozen=True)
class ArchiveRow:
    """What became of one scene: a row of the summary, all cells as text."""

    cells: Mapping[str, str]

    @property
    def scene(self) -> str:
        """The path of the scene."""
        return self.cells["scene"]

    @property
    def status(self) -> str:
        """One of "mapped", "finished before" and "failed"."""
        return self.cells["status"]

    @property
    def error(self) -> str:
        """Why it failed, or nothing."""
        return self.cells["error"]


def find_scenes(given: Iterable[str | PathLike[str]]) -> list[Path]:
    """Return the scenes that paths stand for: files, folders of them, lists in text files (.txt).

    A line of a list is a URL, or a path relative to the list; empty lines and those that begin with
    a # are skipped.
    """
    scenes: list[Path] = []
    for path in map(as_path, given):
        if path.is_dir() and not is_store(path):
            inside = [entry for entry in sorted(path.iterdir()) if _is_scene(entry)]
            if not inside:
                raise FileError(f"The folder {path} holds no scene. Give the folder of the files.")
            scenes += inside
        elif path.suffix.lower() == ".txt":
            lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
            named = [as_path(line) for line in lines if line and not line.startswith("#")]
            scenes += [n if isinstance(n, RemotePath) else path.parent / n for n in named]
        else:
            scenes.append(path)
    twice = [str(path) for path, count in Counter(scenes).items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]} is there twice. Give each scene once.")
    return scenes


def _is_scene(path: Path) -> bool:
    if path.name.startswith(".") or not path.is_file():
        return is_store(path)
    headed = path.with_name(f"{path.name}.hdr").exists() or path.with_suffix(".hdr").exists()
    return path.suffix.lower() in _SUFFIXES or (not path.suffix and headed)


def map_archive(
    scenes: Sequence[str | PathLike[str]],
    mapper: Mapper,
    *,
    out: str | PathLike[str],
    options: object,
    report: Callable[[ArchiveRow, int, int], None] = lambda *_: None,
) -> list[ArchiveRow]:
    """Map every scene into a folder of its own inside `out`, and keep a table of what came out.

    Scenes that were mapped before with the same model and options are skipped, also those of a call
    that was stopped; a scene that fails does not stop the others.

    Parameters
    ----------
    scenes : sequence of path
        What :func:`find_scenes` found.
    mapper : callable
        ``mapper(scene, folder, overwrite)`` maps one scene, as :func:`hsreject.map_scene` does.
    out : path
        The folder of all folders; `summary.csv` in it has one row per scene: kept share, share of
        unknown pixels, hectares kept of each class, seconds.
    options : object
        Everything but the scene that the maps depend on, for dask's tokenize.
    report : callable
        Called with the row of each scene, its number and how many there are.
    """
    folder = Path(out)
    check_folder(folder, overwrite=True)
    folder.mkdir(parents=True, exist_ok=True)
    earlier = {row.scene: row for row in _read(folder / SUMMARY)}
    rows: dict[str, ArchiveRow] = {}
    for number, (scene, name) in enumerate(_named(list(map(as_path, scenes))), start=1):
        row = _finished(earlier.get(str(scene)), scene, folder, options)
        if row is None:
            row = _map_one(scene, folder / name, mapper, tokenize(_state(scene), options))
        rows[str(scene)] = row
        _write(folder / SUMMARY, [*(earlier | rows).values()])
        report(row, number, len(scenes))
    return list(rows.values())


def _named(scenes: Sequence[Path]) -> list[tuple[Path, str]]:
    """Return each scene with the name of its folder: its own, with that of its folder if needed."""
    count = Counter(scene.stem for scene in scenes)
    names = [
        scene.stem if count[scene.stem] == 1 else f"{scene.parent.name}_{scene.name}"
        for scene in scenes
    ]
    if len(set(names)) < len(names):
        raise InputError(
            "Scenes need different names (some have the same name in folders of the same name). "
            "Map them into different folders."
        )
    return list(zip(scenes, names, strict=True))


def _state(scene: Path) -> tuple[object, ...]:
    """Return what tells a scene from what it was before."""
    try:
        state = state_of(scene)
    except OSError:  # whoever opens it says why
        state = (0, 0)
    return (__version__, str(scene), *state)


def _finished(
    row: ArchiveRow | None, scene: Path, folder: Path, options: object
) -> ArchiveRow | None:
    """Return the row of a scene that needs no work, or None."""
    if row is None or row.status == FAILED:
        return None
    is_same_work = row.cells["work"] == tokenize(_state(scene), options)
    files = (*(f"{name}.tif" for name in FILES), SUMMARY_FILE)
    has_all_files = all((folder / row.cells["folder"] / name).is_file() for name in files)
    return ArchiveRow({**row.cells, "status": FINISHED}) if is_same_work and has_all_files else None


def _map_one(scene: Path, folder: Path, mapper: Mapper, work: str) -> ArchiveRow:
    begun = time.perf_counter()
    cells = {"scene": str(scene), "folder": folder.name, "status": FAILED, "work": work}
    try:
        result = mapper(scene, folder, (folder / MANIFEST).is_file())
    except HsrejectError as error:
        cells["error"] = str(error)
    else:
        cells |= {"status": MAPPED, **_numbers(result.summary)}
    cells["seconds"] = f"{time.perf_counter() - begun:.1f}"
    return ArchiveRow(dict.fromkeys(_HEAD, "") | cells)


def _numbers(summary: MapSummary) -> dict[str, str]:
    """Return the figures of a map that the table has."""
    cells = {
        "pixels": str(summary.n_pixels),
        "kept_share": f"{1 - summary.rejected_fraction:.6f}",
    }
    if summary.n_unknown is not None:
        cells["unknown_share"] = f"{summary.n_unknown / summary.n_pixels:.6f}"
    unit = "pixels" if summary.pixel_hectares is None else "hectares"
    kept = {share.name: share.n_kept for share in summary.classes}
    kept |= {group.name: group.n_kept for group in summary.groups}
    for name, n_pixels in kept.items():
        area = summary.hectares(n_pixels)
        cells[f"{unit} {name}"] = str(n_pixels) if area is None else f"{area:.2f}"
    return cells


def _read(path: Path) -> list[ArchiveRow]:
    """Return the rows of an earlier call; a file that is not such a table counts as none."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    if not all(set(_HEAD) <= set(row) for row in rows):
        raise FileError(f"{path} is not a summary of hsreject. Choose another folder.")
    return [ArchiveRow({name: cell or "" for name, cell in row.items()}) for row in rows]


def _write(path: Path, rows: Sequence[ArchiveRow]) -> None:
    names = list(dict.fromkeys((*_HEAD, *(name for row in rows for name in row.cells))))
    with replacing(path, overwrite=True) as work, work.open("w", encoding="utf-8", newline="") as s:
        table = csv.DictWriter(s, names, restval="")
        table.writeheader()
        table.writerows(row.cells for row in rows)
