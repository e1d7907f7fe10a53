"""The benchmarks can be watched: how long they take is said first, and rows appear one by one."""

import ast
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from benchmarks.__main__ import NAMES, run
from benchmarks.timing import Row

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_says_how_long_it_takes(name: str) -> None:
    # parsed, not imported: some compare with packages that only they install
    tree = ast.parse((FOLDER / f"bench_{name}.py").read_text("utf-8"))
    minutes = {
        target.id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id == "MINUTES"
    }
    assert minutes["MINUTES"] > 0
    assert any(isinstance(node, ast.FunctionDef) and node.name == "rows" for node in tree.body)


def test_a_row_is_printed_before_the_next_is_measured() -> None:
    screen = StringIO()

    def rows() -> Iterator[Row]:
        yield Row("the first", "1.0")
        assert "the first" in screen.getvalue()
        yield Row("the second", "2.0", "at most 3")

    module = ModuleType("bench_two", "Two rows.")
    module.rows = rows  # type: ignore[attr-defined]
    _, measured = run("two", module, Console(file=screen, width=120))
    assert [row.measured for row in measured] == ["1.0", "2.0"]
    assert "at most 3" in screen.getvalue()
