"""Zip the QGIS plugin, after the checks that the plugin repository of QGIS makes.

``python -m tools.plugin_zip dist/hsreject_processing.zip``. With ``--release`` places that are only
reserved (``.example``) are refused, too: whoever publishes the plugin writes where it really lives.
"""

from __future__ import annotations

import argparse
import configparser
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

PLUGIN = Path(__file__).parents[1] / "integrations" / "qgis" / "hsreject_processing"
NEEDED = (
    "name", "qgisMinimumVersion", "description", "about", "version", "author", "email",
    "homepage", "repository", "tracker",
)  # fmt: skip
TEXTS = {".py", ".txt", ".svg", ".md", ""}
LARGEST = 25 * 2**20  # bytes
_THEN = (2026, 1, 1, 0, 0, 0)  # the same files make the same zip


def plugin_files(folder: Path) -> list[Path]:
    """Return the files of the plugin, without what Python leaves beside them."""
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )


def problems(folder: Path, *, release: bool) -> Iterator[str]:
    """Yield what the repository would refuse, in words."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(folder / "metadata.txt", encoding="utf-8")
    general = dict(parser["general"]) if parser.has_section("general") else {}
    yield from (
        f"metadata.txt has no {name}" for name in NEEDED if not general.get(name, "").strip()
    )
    for name in ("homepage", "repository", "tracker"):
        address = general.get(name, "")
        if not re.fullmatch(r"https://[\w.-]+(/[\w./-]*)?", address):
            yield f"{name} is not an address: {address}"
        if release and re.match(r"https://[\w.-]*example\b", address):
            yield f"{name} is only a reserved name: {address}. Say where the plugin lives"
    if not re.fullmatch(r"\d+(\.\d+)*", general.get("version", "")):
        yield f"version must be numbers (got {general.get('version')})"
    if general.get("qgisMaximumVersion", "4.99").startswith("3."):
        yield "qgisMaximumVersion excludes QGIS 4"
    if "install" not in general.get("about", ""):
        yield "about must say how to install the program that the plugin needs"
    yield from _problems_of_files(folder, general.get("icon", "icon.svg"))


def _problems_of_files(folder: Path, icon: str) -> Iterator[str]:
    files = plugin_files(folder)
    for name in ("LICENSE", "__init__.py", icon):
        if folder / name not in files:
            yield f"{name} is missing"
    for path in files:
        if path.suffix not in TEXTS or b"\0" in path.read_bytes():
            yield f"{path.name} is not text: binaries are refused"
        if path.name.startswith("."):
            yield f"{path.name} is hidden"
    if sum(path.stat().st_size for path in files) > LARGEST:
        yield "the plugin is larger than 25 MB"


def write_zip(folder: Path, path: Path) -> None:
    """Write the zip that QGIS installs: one folder, named as the plugin is imported."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in plugin_files(folder):
            inside = zipfile.ZipInfo(f"{folder.name}/{file.relative_to(folder).as_posix()}", _THEN)
            inside.compress_type = zipfile.ZIP_DEFLATED
            inside.external_attr = 0o644 << 16
            archive.writestr(inside, file.read_bytes())


def main() -> None:
    """Check and zip the plugin, or say what is wrong with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--release", action="store_true")
    options = parser.parse_args()
    if wrong := list(problems(PLUGIN, release=options.release)):
        sys.exit("The plugin repository of QGIS would refuse this:\n" + "\n".join(wrong))
    write_zip(PLUGIN, options.out)
    sys.stdout.write(f"wrote {options.out}\n")


if __name__ == "__main__":
    main()
