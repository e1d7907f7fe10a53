"""Colours that are told apart by everyone: simulated colour-vision deficiencies.

The matrices are those of Machado, Oliveira and Fernandes (2009) for complete deficiency, applied to
linear RGB. A CIELAB distance of 15 is several times what two patches side by side need.
"""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from skimage.color import rgb2lab

from hsreject.datasets import indian_pines
from hsreject.experiments.figure_3 import CLASS_COLORS
from hsreject.plot.outcome_map import OUTCOMES
from hsreject.plot.style import BETTER, WORSE, line_looks

SEEN = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
               [0.004733, 0.691367, 0.303900]],
    "grey": [[0.2126, 0.7152, 0.0722]] * 3,
}  # fmt: skip


def seen(color: str, kind: str) -> np.ndarray:
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    changed = np.clip(np.array(SEEN[kind]) @ linear, 0, 1)
    back = np.where(changed <= 0.0031308, 12.92 * changed, 1.055 * changed ** (1 / 2.4) - 0.055)
    return rgb2lab(back[np.newaxis, np.newaxis])[0, 0]


def nearest(colors: list[str], kind: str) -> float:
    return min(np.linalg.norm(seen(a, kind) - seen(b, kind)) for a, b in combinations(colors, 2))


@pytest.mark.parametrize("kind", ["protan", "deutan", "tritan"])
@pytest.mark.parametrize(
    "colors",
    [
        pytest.param([outcome.color for outcome in OUTCOMES], id="outcomes"),
        pytest.param([look.color for look in line_looks(6)], id="lines"),
        pytest.param([*CLASS_COLORS, "#000000", "#ffffff"], id="synthetic classes"),
        pytest.param([*indian_pines.CLASS_COLORS, "#000000", "#ffffff"], id="Indian Pines"),
        pytest.param([BETTER, WORSE, "#ffffff"], id="operating set"),
    ],
)
def test_colours_stay_apart(colors: list[str], kind: str) -> None:
    assert nearest(colors, kind) > 15


def test_outcomes_stay_apart_on_a_grey_printer() -> None:
    assert nearest([outcome.color for outcome in OUTCOMES], "grey") > 7
