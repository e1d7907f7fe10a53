"""The house: imports go downwards, no name occurs twice, no folder outgrows its dozen."""

import ast
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "hsreject"
MODULES = sorted(PACKAGE.rglob("*.py"))

# From the bottom up. A name is a module or a package directly under hsreject.
LAYERS = (
    {"errors"},
    {"progress", "registry", "classes", "compilation", "threads", "files", "keys"},
    {"schema", "class_tree"},
    {"confidence", "sampling"},
    {"io"},
    {"datasets"},
    {"measures"},
    {"features"},
    {"classify"},
    {"context"},
    {"rejection"},
    {"promise"},
    {"handover"},
    {"mapping"},
    {"plot"},
    {"report"},
    {"pipeline"},
    {"cli"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
LEVEL["__init__"] = -1  # the lazy front door; anyone may ask it for __version__
LEVEL["__main__"] = len(LAYERS)

COMPUTING = {"features", "classify", "context", "measures", "rejection", "confidence"}
TALKING = {"io", "datasets", "plot", "report", "pipeline", "cli"}


def imported(path: Path) -> set[str]:
    """Return what a module imports of hsreject, as names of LAYERS."""
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
    return {name if name in LEVEL else "__init__" for name in found}


def test_imports_go_downwards_only() -> None:
    for path in MODULES:
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        assert own in LEVEL, f"{own} has no layer: add it to LAYERS where it belongs"
        if own == "__init__":
            continue  # it imports lazily, by name
        for other in imported(path) - {own}:
            step = f"{path.relative_to(PACKAGE)} imports {other}"
            assert LEVEL[other] < LEVEL[own], f"{step}, which is not below"
            assert own not in COMPUTING or other not in TALKING, f"{step}, but only computes"


def test_a_file_name_says_where_you_are() -> None:
    names = Counter(path.name for path in MODULES if path.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []
    grab_bags = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py", "base.py"}
    assert grab_bags.isdisjoint(names)


def test_no_folder_outgrows_its_dozen() -> None:
    sizes = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    assert {str(folder): n for folder, n in sizes.items() if n > 13} == {}
