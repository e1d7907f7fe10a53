"""Run the benchmarks: all, or those named on the command line.

``python -m benchmarks`` runs every ``benchmarks/bench_*.py``, ``python -m benchmarks curve smlr``
two of them. Each module has a function ``rows()`` that yields :class:`benchmarks.timing.Row`.
"""

import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

NAMES = sorted(
    path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
)


def run(name: str, console: Console) -> None:
    """Run one benchmark module and print its rows as they come."""
    module = import_module(f"benchmarks.bench_{name}")
    table = Table(
        title=f"{name}: {(module.__doc__ or '').partition(chr(10))[0]}", title_justify="left"
    )
    for heading in ("what", "measured", "wanted"):
        table.add_column(heading)
    for row in module.rows():
        table.add_row(row.what, row.measured, row.wanted)
    console.print(table)


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    wanted = sys.argv[1:] or NAMES
    unknown = sorted(set(wanted) - set(NAMES))
    if unknown:
        sys.exit(f"No benchmark named {', '.join(unknown)}. There are: {', '.join(NAMES)}.")
    console = Console(width=120)
    for name in wanted:
        run(name, console)


main()
