"""The house: imports go downwards, no name occurs twice, no folder outgrows its dozen."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from hsreject.compilation import kernel

PACKAGE = Path(__file__).parents[1] / "hsreject"
MODULES = sorted(PACKAGE.rglob("*.py"))

# From the bottom up. A name is a module or a package directly under hsreject.
LAYERS = (
    {"errors"},
    {"progress", "registry", "compilation", "threads", "files", "keys", "notebook", "templates"},
    {"schema"},
    {"confidence", "splits"},
    {"io"},
    {"datasets"},
    {"measures"},
    {"features"},
    {"classify"},
    {"context"},
    {"rejection"},
    {"plugins"},
    {"evaluation"},
    {"certification"},
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
    packages = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "hsreject":
                names = [f"hsreject.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        packages |= {name.split(".")[1] for name in names if name.startswith("hsreject.")}
    return {name if name in LEVEL else "__init__" for name in packages}


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
    assert {str(folder): n for folder, n in sizes.items() if n > 12} == {}


def test_no_function_has_more_than_ten_parameters() -> None:
    """Those of a command of the command line are its options."""
    many = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            given = node.args
            names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            names += [one.arg for one in (given.vararg, given.kwarg) if one is not None]
            n_parameters = len(names) - (names[:1] in (["self"], ["cls"]))
            name = getattr(node, "name", "lambda")
            is_command = path.parent.name == "cli" and name.endswith("_command")
            if n_parameters > 10 and not is_command:
                many[f"{path.relative_to(PACKAGE)}:{node.lineno} {name}"] = n_parameters
    assert many == {}


def running(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module, inside functions too, but not what only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node
            yield from running(node)


def modules_named_in(path: Path) -> set[str]:
    """Return the modules, and the names in them, that a file imports when it runs."""
    names = set()
    for node in running(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def test_no_two_files_import_each_other() -> None:
    paths = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in MODULES}
    graph = {
        name: (modules_named_in(PACKAGE.parent / f"{name.replace('.', '/')}.py") & paths) - {name}
        for name in paths
    }
    list(TopologicalSorter(graph).static_order())  # a CycleError names the files of a cycle


# What is borrowed from other packages beyond what they document, and why. When one of these moves,
# the tests of its module fail at their first import.
BORROWED = {
    "rasterio._err": "what GDAL raises while it writes has no public base class",
    "sklearn.tree._tree": "a tree out of a model file is checked before it is walked",
    "xarray.core": "a lazy array of a backend; the guide for backends names it, and no other place",
}


def test_private_modules_of_others_are_listed() -> None:
    names = {name for path in MODULES for name in modules_named_in(path)}
    private = {
        name for name in names if re.match(r"(?!__future__)(?!hsreject)\S*\b_|xarray\.core", name)
    }
    assert {listed for listed in BORROWED if any(name.startswith(listed) for name in private)} == {
        *BORROWED
    }
    assert [name for name in private if not name.startswith(tuple(BORROWED))] == []


def test_numba_still_takes_the_options_of_kernels() -> None:
    """``_nrt`` is not documented: without reference counts kernels are a tenth faster."""
    assert kernel(lambda x: x + x)(2.0) == 4.0
