"""Run the benchmarks: all, or those named on the command line.

``python -m benchmarks`` runs every ``benchmarks/bench_*.py``, ``python -m benchmarks curve smlr``
two of them, and ``--page FILE`` writes their tables as a page, too. Each module has a function
``rows()`` that yields :class:`benchmarks.timing.Row`, and ``MINUTES``, about how long that takes on
two idle cores.
"""

import argparse
import os
import platform
import time
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.table import Table

from benchmarks.timing import Row
from hsreject import __version__

NAMES = sorted(
    path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
)
PEERS = ("numpy", "scipy", "scikit-learn", "python-glmnet", "reject", "scikit-fallback")


def run(name: str, module: ModuleType, console: Console) -> tuple[str, list[Row]]:
    """Run one benchmark, print each row when it is measured, and return its title and rows."""
    title = f"{name}: {(module.__doc__ or '').partition(chr(10))[0]}"
    console.print(f"\n[bold]{title}[/bold]")
    start = time.monotonic()
    rows = []
    for row in module.rows():
        rows.append(row)
        console.print(_line(row.what, row.measured, row.bound))
    console.print(f"  {name} took {(time.monotonic() - start) / 60:.1f} minutes.", style="dim")
    return title, rows


def _line(*cells: str) -> Table:
    """Return one row with the column widths of all the others, which are not measured yet."""
    line = Table.grid(padding=(0, 2, 0, 0))
    for width in (62, 32, 22):
        line.add_column(width=width, overflow="fold")
    line.add_row(*cells)
    return line


def page(names: list[str], tables: list[tuple[str, list[Row]]]) -> str:
    """Return the tables as Markdown, with what they were measured on."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PEERS)
    sections = [
        f"## {title}\n\n| what | measured | bound |\n|---|---|---|\n"
        + "".join(f"| {row.what} | {row.measured} | {row.bound} |\n" for row in rows)
        for title, rows in tables
    ]
    return (
        f'# Benchmarks\n\nPrinted by `make bench ONLY="{" ".join(names)}" PAGE=docs/benchmarks.md` '
        f"with hsreject {__version__} on Python {platform.python_version()}, {versions}. The "
        f"machine ({os.cpu_count()} cores, {platform.machine()}) had a load of "
        f"{os.getloadavg()[1]:.0f} at the time. Seconds depend on that; ratios hardly do, because "
        "both sides ran one after the other. These are some of the benchmarks; `make bench` runs "
        "all.\n\n"
        '*What* is measured; "a / b" is the time of a divided by that of b. *Measured* is the '
        "result of this run. *Bound* is what the project demands of itself; rows without a bound "
        "are for comparison with your own machine.\n\n" + "\n".join(sections)
    )


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help=f"of {', '.join(NAMES)}")
    parser.add_argument("--page", type=Path, help="write the tables as Markdown")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(NAMES)):
        parser.error(f"No benchmark named {', '.join(unknown)}. There are: {', '.join(NAMES)}.")
    console = Console(width=120, highlight=False)
    modules = {name: import_module(f"benchmarks.bench_{name}") for name in options.names}
    times = ", ".join(f"{name} {module.MINUTES:g}" for name, module in modules.items())
    total = sum(module.MINUTES for module in modules.values())
    console.print(f"Roughly {total:g} minutes in all, on two idle cores ({times}).")
    console.print(_line("what", "measured", "bound"), style="bold")
    tables = [run(name, module, console) for name, module in modules.items()]
    if options.page:
        options.page.write_text(page(options.names, tables), "utf-8")


if __name__ == "__main__":
    main()
