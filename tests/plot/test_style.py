"""Saving without a display, the same bytes each time, colors for all eyes, matplotlib as it was.

The matrices of color-vision deficiencies are those of Machado, Oliveira and Fernandes (2009) for
complete deficiency, applied to linear RGB. A CIELAB distance of 15 is several times what two
patches side by side need.
"""

import subprocess
import sys
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from skimage.color import rgb2lab

import hsreject as hr
from hsreject.datasets.indian_pines import CLASS_COLORS
from hsreject.plot.map_displays import OUTCOMES
from hsreject.plot.style import BETTER, WORSE, line_looks

SEEN = {
    "everyone": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
               [0.004733, 0.691367, 0.303900]],
    "gray": [[0.2126, 0.7152, 0.0722]] * 3,
}  # fmt: skip


def seen(color: str, kind: str) -> np.ndarray:
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    changed = np.clip(np.array(SEEN[kind]) @ linear, 0, 1)
    back = np.where(changed <= 0.0031308, 12.92 * changed, 1.055 * changed ** (1 / 2.4) - 0.055)
    return rgb2lab(back[np.newaxis, np.newaxis])[0, 0]


def nearest(colors: list[str], kind: str) -> float:
    return min(np.linalg.norm(seen(a, kind) - seen(b, kind)) for a, b in combinations(colors, 2))


@pytest.mark.parametrize("kind", ["everyone", "protan", "deutan", "tritan"])
def test_colors_stay_apart(kind: str) -> None:
    for name, colors in {
        "outcomes": [outcome.color for outcome in OUTCOMES],
        "lines": [look.color for look in line_looks(6)],
        "Indian Pines": [*CLASS_COLORS, "#000000", "#ffffff"],
        "operating set": [BETTER, WORSE, "#ffffff"],
    }.items():
        assert nearest(colors, kind) > 15, name


def test_outcomes_and_lines_stay_apart_without_color() -> None:
    assert nearest([outcome.color for outcome in OUTCOMES], "gray") > 7
    looks = line_looks(6)
    assert len({look.dashes for look in looks}) == 6
    assert len({look.marker for look in looks}) == 6


HEADLESS = """
import numpy as np
import hsreject as hr
figure = hr.plot.new_figure()
hr.plot.ClassMapDisplay.from_labels(np.array([[1, 2]])).plot(figure.add_subplot())
hr.plot.save_figure(figure, {path!r}, formats=("png", "pdf"))
import sys
assert "matplotlib.pyplot" not in sys.modules, "saving must not start pyplot"
"""


def test_saving_needs_no_display_and_no_pyplot(tmp_path: Path) -> None:
    code = HEADLESS.format(path=str(tmp_path / "map"))
    package = str(Path(hr.__file__).parents[1])
    environment = {"PATH": "/usr/bin", "HOME": str(tmp_path), "PYTHONPATH": package}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "map.pdf").read_bytes().startswith(b"%PDF")


def test_files_are_the_same_each_time(tmp_path: Path) -> None:
    written = []
    for name in ("a", "b"):
        figure = hr.plot.new_figure()
        hr.plot.ClassMapDisplay.from_labels(np.array([[1, 2]])).plot(figure.add_subplot())
        files = hr.plot.save_figure(figure, tmp_path / name, formats=("png", "pdf", "svg"))
        written.append([file.read_bytes() for file in files])
    assert written[0] == written[1]


def test_saving_into_nowhere_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(hr.errors.FileError, match="missing"):
        hr.plot.save_figure(hr.plot.new_figure(), tmp_path / "missing" / "map.png")


def test_drawing_leaves_the_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(mpl.rcParams)
    ax = hr.plot.new_figure().add_subplot()
    hr.plot.ClassMapDisplay.from_labels(np.array([[1, 2]])).plot(ax)
    assert dict(mpl.rcParams) == before
    # a notebook's backend turns "interactive" on when the first figure is made; figures after it
    # are shown only if it stays on
    off, on = False, True
    monkeypatch.setitem(mpl.rcParams, "interactive", off)
    with hr.plot.print_style():
        mpl.interactive(on)
    assert mpl.is_interactive()


def test_without_axes_a_pyplot_figure_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 (after the backend is named)

    ax = hr.plot.ClassMapDisplay.from_labels(np.array([[1, 2]])).plot()
    try:
        assert plt.fignum_exists(ax.figure.number)
    finally:
        plt.close(ax.figure)
