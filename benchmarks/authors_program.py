"""SegSALSA as the authors' own program does it: ``python -m benchmarks.authors_program``.

Their public MATLAB program is described here in NumPy, with its settings (penalty 10, 10
iterations, no test of convergence) and the things in which it differs from its papers, each of
which can be mended on its own. The objective is that of :class:`hsreject.SegSALSA`, of the field
projected onto the simplex; the optimum is ours with a gap of 1e-6, in double precision.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import fft2, ifft2

import hsreject as hr
from benchmarks.numpy_admm import objective, project_simplex, prox_data

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

PENALTY, N_ITERATIONS = 10.0, 10
OURS = "hsreject, gap 1e-3"


@dataclass(frozen=True)
class Slips:
    """What the program does otherwise than its papers; all as it was published."""

    filters: bool = True  # the difference filters are overwritten before they are used
    multiplier: bool = True  # that of sum-to-one takes the copy of nonnegativity
    free: bool = True  # nothing is penalised in the first row and column


def authors_field(probability: Array, weight: float, n_iterations: int, slips: Slips) -> Array:
    """Return the field (category, y, x) after some iterations: ADMM with four groups of splits.

    Copies for data, nonnegativity and sum-to-one, and one for each direction of the differences,
    whose borders are periodic; the quadratic step is a division of Fourier transforms.
    """
    n_classes, n_rows, n_columns = probability.shape
    impulses = np.zeros((2, n_rows, n_columns))
    impulses[:, 0, 0] = 1
    impulses[0, 0, -1] = impulses[1, -1, 0] = -1  # a pixel less the next one, around the border
    transfer = fft2(impulses)
    divisor = 3 + (np.abs(transfer) ** 2).sum(axis=0)
    back = transfer.conj() / divisor
    forth = ifft2(back) if slips.filters else transfer

    def filtered(images: Array, response: NDArray[np.complex128]) -> Array:
        return np.asarray(ifft2(fft2(images) * response).real)

    threshold = np.full((n_rows, n_columns), weight / PENALTY)
    if slips.free:
        threshold[0] = threshold[:, 0] = 0
    squared = (probability**2).sum(axis=0)
    copies = dict.fromkeys(("data", "nonnegative", "sum"), probability)
    rest = {name: np.zeros_like(probability) for name in copies}
    slopes = [probability, probability]  # its start, in place of differences
    slope_rest = [np.zeros_like(probability)] * 2
    for _ in range(n_iterations):
        field = filtered(sum(copies[name] + rest[name] for name in copies), 1 / divisor)
        for direction in range(2):
            field += filtered(slopes[direction] + slope_rest[direction], back[direction])
        points = {name: field - rest[name] for name in copies}
        copies = {
            "data": prox_data(points["data"], probability, 1 / PENALTY, squared),
            "nonnegative": np.maximum(points["nonnegative"], 0),
            "sum": points["sum"] + (1 - points["sum"].sum(axis=0)) / n_classes,
        }
        rest = {name: copies[name] - points[name] for name in copies}
        if slips.multiplier:
            rest["sum"] = copies["nonnegative"] - points["sum"]
        moved = [filtered(field, forth[d]) - slope_rest[d] for d in range(2)]
        norm = np.sqrt((moved[0] ** 2 + moved[1] ** 2).sum(axis=0))
        factor = np.maximum(norm - threshold, 0) / np.maximum(norm, 1e-300)
        slopes = [factor * point for point in moved]
        slope_rest = [after - before for after, before in zip(slopes, moved, strict=True)]
    return field


VARIANTS = {
    "as published": Slips(),
    "with its own differences": Slips(filters=False),
    "and the multiplier of the sum": Slips(filters=False, multiplier=False),
    "and every pixel penalised": Slips(filters=False, multiplier=False, free=False),
}


def score(
    field: Array, *, best: hr.SegSALSAResult[Array], weight: float, reference: NDArray[np.integer]
) -> list[float]:
    """Return, in percent: objective above the optimum, labels of the optimum, accuracy."""
    reached = objective(np.maximum(best.probability, 1e-12), project_simplex(field), weight)
    label = field.argmax(axis=0) + 1
    return [
        100 * (reached / best.objective - 1),
        100 * float((label == best.label).mean()),
        100 * float((label == reference)[reference > 0].mean()),
    ]


def main() -> None:
    """Measure on draws of the paper's protocol, and print a table of means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--weights", type=float, nargs="+", default=[2.0, 10.0])
    parser.add_argument("--iterations", type=int, nargs="+", default=[N_ITERATIONS, 100])
    asked = parser.parse_args()
    cube, labels = hr.load_indian_pines()
    features = hr.MNF(15).fit(cube).transform(cube)
    table: dict[tuple[str, str, str], list[list[float]]] = {}
    for seed in range(asked.seeds):
        train, test = hr.sample_per_class(labels, 10, seed=seed)
        model = hr.SceneClassifier(hr.SparseMultinomialRegression()).fit(features, train)
        probability = np.asarray(model.predict_proba(features).values, dtype=np.float64)
        probability /= probability.sum(axis=0)
        reference = test.values
        for weight in asked.weights:
            prior = hr.VectorTV(weight)
            best = hr.SegSALSA(prior, tol=1e-6, dtype="float64", max_iter=20_000).solve(probability)
            scored = partial(score, best=best, weight=weight, reference=reference)
            fields = {("probabilities alone", "0"): probability}
            for (name, slips), n in product(VARIANTS.items(), asked.iterations):
                fields[name, str(n)] = authors_field(probability, weight, n, slips)
            ours = hr.SegSALSA(prior).solve(probability)
            fields[OURS, str(ours.n_iterations)] = ours.hidden_field.astype(float)
            for (name, steps), field in fields.items():
                table.setdefault((f"{weight:g}", name, steps), []).append(scored(field))
    print(
        f"Indian Pines, ten pixels per class, seeds 0 to {asked.seeds - 1}, penalty {PENALTY:g}\n"
    )
    print("| weight | program | iterations | objective above optimum | its labels | accuracy |")
    print("|---|---|---|---|---|---|")
    for (weight, name, steps), rows in table.items():  # our iterations differ from draw to draw
        above, same, right = np.mean(rows, axis=0)
        print(f"| {weight} | {name} | {steps} | {above:.2f} % | {same:.1f} % | {right:.1f} % |")


if __name__ == "__main__":
    main()
