"""What must be true before a release: ``python -m tools.release_check v0.4.0``.

The tag, the package and the citation have one version, the changelog has its date, and every
address is a real one: until then they end in the reserved ``.example``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WITH_ADDRESSES = (
    "pyproject.toml",
    "CITATION.cff",
    "integrations/qgis/hsreject_processing/metadata.txt",
)


def problems(tag: str, root: Path = ROOT) -> Iterator[str]:
    """Yield what stands against a release, in words."""

    def text(name: str) -> str:
        return (root / name).read_text("utf-8")

    version = tag.removeprefix("v")
    stated = {
        "hsreject/__init__.py": r'__version__ = "(.+)"',
        "CITATION.cff": r"(?m)^version: (.+)$",
        "conda/recipe.yaml": r'version: "(.+)"',
    }
    for name, pattern in stated.items():
        found = re.search(pattern, text(name))
        if not found or found[1] != version:
            yield f"{name} says version {found[1] if found else 'nothing'}, the tag {version}"
    if not re.search(rf"(?m)^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", text("CHANGELOG.md")):
        yield f"CHANGELOG.md has no dated section for {version}"
    for name in WITH_ADDRESSES:
        if re.search(r"https?://[\w.-]*\.example\b", text(name)):
            yield f"{name} has addresses that are only reserved: say where the project lives"


def main() -> None:
    """Check, or say what is wrong."""
    if len(sys.argv) != 2:
        sys.exit("Give the tag: python -m tools.release_check v0.4.0")
    if wrong := list(problems(sys.argv[1])):
        sys.exit("This is not ready for a release:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
