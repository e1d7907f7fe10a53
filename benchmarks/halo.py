"""How wide must the halo of a block be? ``python -m benchmarks.halo --weights 0.5 1 2 4 8 16 32``.

On synthetic scenes of three classes, whose probabilities alone give 76 % of the labels right, the
labels of blocks of 64 x 64 pixels with halos of 1, 2, 4 and 8 pixels per unit of weight (at least
16 for the last, the rule of vector TV) are compared with those of the whole scene. Fields are
squares, 3, 4 or 8 pixels wide per unit of weight: narrower ones are lost whatever the halo is.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

import hsreject as hr

if TYPE_CHECKING:
    from numpy.typing import NDArray

N_CLASSES, EVIDENCE, BLOCK = 3, 1.5, 64
FIELDS = (3, 4, 8)
PER_WEIGHT = (1, 2, 4)


def scene(side: int, field_side: int, seed: int) -> NDArray[np.float64]:
    """Return calibrated probabilities (category, y, x) of square fields of random classes."""
    random = np.random.default_rng(seed)
    place = np.arange(side) // field_side
    classes = random.integers(N_CLASSES, size=[place[-1] + 1] * 2)[np.ix_(place, place)]
    true = classes == np.arange(N_CLASSES)[:, None, None]
    score = EVIDENCE * (EVIDENCE * true + random.standard_normal(true.shape))
    powers = np.exp(score - score.max(axis=0))
    return powers / powers.sum(axis=0)


def same_labels(weight: float, per_weight: int, seed: int) -> dict[str, float]:
    """Return the share of labels, in percent, that blocks with each halo share with the scene."""
    prior = hr.VectorTV(weight)
    context = hr.SegSALSA(prior, tol=1e-4, max_iter=6000)
    margin = prior.halo + max(round(4 * weight), 16)
    side = 2 * (BLOCK + margin)
    probability = scene(side, max(round(per_weight * weight), 6), seed)
    label = context.solve(probability).label
    halos = {f"{n} per unit": max(round(n * weight), 1) for n in PER_WEIGHT} | {"rule": prior.halo}
    shares = {}
    for name, halo in halos.items():
        equal = []
        for row, column in product((margin, margin + BLOCK), repeat=2):
            rows, columns = (slice(a - halo, a + BLOCK + halo) for a in (row, column))
            alone = context.solve(probability[:, rows, columns]).label
            inside = alone[halo : halo + BLOCK, halo : halo + BLOCK]
            equal.append(inside == label[row : row + BLOCK, column : column + BLOCK])
        shares[name] = 100 * float(np.mean(equal))
    return shares


def main() -> None:
    """Measure, and print a table: the mean over the seeds and the least."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--weights", nargs="+", type=float, default=[0.5, 1, 2, 4, 8, 16])
    parser.add_argument("--seeds", type=int, default=8, help="how many scenes (from --first on)")
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.seeds)
    print(f"Labels (%) that blocks share with the whole scene, mean (least), seeds {seeds}\n")
    names = [*(f"{n} per unit" for n in PER_WEIGHT), "rule"]
    print(f"| weight | fields, in weights | {' | '.join(names)} |")
    print("|---|---|" + "---|" * len(names), flush=True)
    for weight, per_weight in product(asked.weights, FIELDS):
        rows = [same_labels(weight, per_weight, seed) for seed in seeds]
        cells = [[row[name] for row in rows] for name in names]
        text = " | ".join(f"{np.mean(cell):.2f} ({min(cell):.2f})" for cell in cells)
        print(f"| {weight:g} | {per_weight} | {text} |", flush=True)


if __name__ == "__main__":
    main()
