"""Saving without a display, the same bytes each time, and leaving matplotlib as it was."""

import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from hsreject.errors import FileError
from hsreject.plot import ClassMapDisplay, new_figure, save_figure
from hsreject.plot.categories import color_distance
from hsreject.plot.style import line_looks, print_style

HEADLESS = """
import numpy as np
from hsreject.plot import ClassMapDisplay, new_figure, save_figure
figure = new_figure()
ClassMapDisplay.from_labels(np.array([[1, 2]])).plot(figure.add_subplot())
save_figure(figure, {path!r}, formats=("png", "pdf"))
import sys
assert "matplotlib.pyplot" not in sys.modules, "saving must not start pyplot"
"""


def test_saving_needs_no_display_and_no_pyplot(tmp_path: Path) -> None:
    code = HEADLESS.format(path=str(tmp_path / "map"))
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={"PATH": "/usr/bin", "HOME": str(tmp_path)}
    )
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "map.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("name", ["png", "pdf", "svg"])
def test_files_are_the_same_each_time(tmp_path: Path, name: str) -> None:
    written = []
    for run in ("a", "b"):
        figure = new_figure()
        ClassMapDisplay.from_labels(np.array([[1, 2]])).plot(figure.add_subplot())
        written.append(save_figure(figure, tmp_path / run, formats=(name,))[0].read_bytes())
    assert written[0] == written[1]


def test_saving_into_nowhere_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"Cannot write .*: there is no folder .*missing"):
        save_figure(new_figure(), tmp_path / "missing" / "map.png")


def test_drawing_leaves_the_settings_of_the_user() -> None:
    before = dict(mpl.rcParams)
    ClassMapDisplay.from_labels(np.array([[1, 2]])).plot(new_figure().add_subplot())
    assert dict(mpl.rcParams) == before


def test_what_a_backend_sets_while_drawing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    # a notebook's backend turns "interactive" on when the first figure is made; figures after it
    # are shown only if it stays on
    off, on = False, True
    monkeypatch.setitem(mpl.rcParams, "interactive", off)
    with print_style():
        mpl.interactive(on)
    assert mpl.is_interactive()


def test_without_axes_a_pyplot_figure_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 (after the backend is named)

    ax = ClassMapDisplay.from_labels(np.array([[1, 2]])).plot()
    try:
        assert plt.fignum_exists(ax.figure.number)
    finally:
        plt.close(ax.figure)


def test_series_differ_in_colour_dashes_and_marker() -> None:
    looks = line_looks(6)
    assert len({look.dashes for look in looks}) == 6
    assert len({look.marker for look in looks}) == 6
    apart = [color_distance(a.color, b.color) for a in looks for b in looks if a is not b]
    assert min(apart) > 20
