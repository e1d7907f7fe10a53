"""Run the benchmarks: all, or those named on the command line.

``python -m benchmarks`` runs every ``benchmarks/bench_*.py``, ``python -m benchmarks curve smlr``
two of them, and ``--page FILE`` writes their tables as a page, too. Each module has a function
``rows()`` that yields :class:`benchmarks.timing.Row`.
"""

import argparse
import os
import platform
from importlib import import_module, metadata
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.timing import Row
from hsreject import __version__

NAMES = sorted(
    path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
)
PEERS = ("numpy", "scipy", "scikit-learn", "python-glmnet", "reject", "scikit-fallback")


def run(name: str, console: Console) -> tuple[str, list[Row]]:
    """Run one benchmark module, print its rows, and return its title and rows."""
    module = import_module(f"benchmarks.bench_{name}")
    title = f"{name}: {(module.__doc__ or '').partition(chr(10))[0]}"
    table = Table("what", "measured", "wanted", title=title, title_justify="left")
    rows = list(module.rows())
    for row in rows:
        table.add_row(row.what, row.measured, row.wanted)
    console.print(table)
    return title, rows


def page(names: list[str], tables: list[tuple[str, list[Row]]]) -> str:
    """Return the tables as Markdown, with what they were measured on."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PEERS)
    sections = [
        f"## {title}\n\n| what | measured | wanted |\n|---|---|---|\n"
        + "".join(f"| {row.what} | {row.measured} | {row.wanted} |\n" for row in rows)
        for title, rows in tables
    ]
    return (
        f'# Benchmarks\n\nPrinted by `make bench ONLY="{" ".join(names)}" PAGE=docs/benchmarks.md` '
        f"with hsreject {__version__} on Python {platform.python_version()}, {versions}. The "
        f"machine ({os.cpu_count()} cores, {platform.machine()}) had a load of "
        f"{os.getloadavg()[1]:.0f} meanwhile, so seconds are only as good as that; ratios are "
        "measured in turns. `make bench` runs all benchmarks, more than are shown here.\n\n"
        + "\n".join(sections)
    )


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help=f"of {', '.join(NAMES)}")
    parser.add_argument("--page", type=Path, help="write the tables as Markdown")
    wanted = parser.parse_args()
    if unknown := sorted(set(wanted.names) - set(NAMES)):
        parser.error(f"No benchmark named {', '.join(unknown)}. There are: {', '.join(NAMES)}.")
    console = Console(width=120)
    tables = [run(name, console) for name in wanted.names]
    if wanted.page:
        wanted.page.write_text(page(wanted.names, tables), "utf-8")


main()
