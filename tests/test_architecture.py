"""Imports go one way: a module may import only from the layers below its own."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "hsreject"

# From the bottom up. A name is a module or a package directly under hsreject.
LAYERS = (
    {"errors"},
    {"registry", "progress", "classes", "fingerprint", "compilation", "files"},
    {"schema"},
    {"confidence", "io", "sampling"},
    {"datasets"},
    {"measures"},
    {"classify"},
    {"context"},
    {"rejection"},
    {"plot"},
    {"report"},
    {"config"},
    {"pipeline"},
    {"mapping"},
    {"experiments"},
    {"cli"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
LEVEL["__init__"] = -1  # the lazy front door; anyone may ask it for __version__
LEVEL["__main__"] = len(LAYERS)

COMPUTING = {"classify", "context", "measures", "rejection", "confidence"}
TALKING = {"io", "plot", "report", "config", "pipeline", "cli", "datasets"}


def home(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "hsreject":
                names = [f"hsreject.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("hsreject.")}
    return {
        name if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists() else "__init__"
        for name in found
    }


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_imports_go_downwards_only(path: Path) -> None:
    own = home(path)
    assert own in LEVEL, f"{own} has no layer: add it to LAYERS where it belongs"
    if own == "__init__":
        return  # it imports lazily, by name
    for other in imported(path) - {own}:
        assert LEVEL[other] < LEVEL[own], f"{own} may not import {other}: it is not below"
        assert not (own in COMPUTING and other in TALKING), (
            f"{own} computes and may not import {other}"
        )


def test_no_grab_bag_modules() -> None:
    forbidden = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py"}
    assert not [path for path in PACKAGE.rglob("*.py") if path.name in forbidden]
