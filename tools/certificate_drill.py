"""Random problems against a conic solver: is any certificate below the true gap?

``python -m tools.certificate_drill --problems 200 --first 0`` draws shapes, probabilities, priors
and weights (0.001 to 1000), solves each with both solvers in both precisions, stopped early and
late, and compares every certificate on the way with the optimum that the conic solver finds.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import cvxpy
import numpy as np

import hsreject as hr
from hsreject.context.segsalsa import SOLVERS
from hsreject.errors import NotConvergedWarning
from tests.context import nuclear_oracle, oracle
from tests.context.scenes import random_probability, regions

CONIC = 1e-8  # of the optimum and one: how far the conic solver's own value may be off
ITERATIONS = (2, 20, 400)


@dataclass(frozen=True)
class Drawn:
    """A problem, and the optimum by the conic solver."""

    name: str
    priors: list[hr.Prior]
    probability: Any
    optimum: float


def draw(seed: int) -> Drawn:
    """Draw a problem; the conic solver sees the same probabilities in double precision."""
    random = np.random.default_rng([46, seed])
    shape = tuple(int(n) for n in random.integers([2, 3, 3], [6, 9, 9]))
    make = (random_probability, regions)[random.integers(2)]
    probability = make(shape, seed=int(random.integers(2**31)))
    grid, kind = shape[1:], ("vector_tv", "edges", "graph_tv", "structure_tensor", "two")[seed % 5]
    weight, other = (float(w) for w in 10 ** random.uniform(-3, 3, 2))
    partition = random.integers(6, size=grid)
    edges = random.uniform(0.1, 1.5, (grid[0], 2, grid[1]))
    edges[:, 0, -1] = edges[-1, 1] = 0
    optimum = partial(oracle.optimum, probability)
    if kind == "structure_tensor":
        weight = min(weight, 30.0)  # beyond, the conic solver is off by more than it says
        best = nuclear_oracle.optimum(probability, weight, patch=3, width=1.0)
        return Drawn(kind, [hr.StructureTensor(weight)], probability, best)
    written = {
        "vector_tv": lambda: ([hr.VectorTV(weight)], [oracle.vector_tv(grid, weight)]),
        "edges": lambda: (
            [hr.VectorTV(weight, edges=edges)],
            [oracle.vector_tv(grid, weight, edges)],
        ),
        "graph_tv": lambda: (
            [hr.GraphTV(weight, partitions=partition)],
            [oracle.graph_tv([partition], weight)],
        ),
        "two": lambda: (
            [hr.VectorTV(weight), hr.GraphTV(other, partitions=partition)],
            [oracle.vector_tv(grid, weight), oracle.graph_tv([partition], other)],
        ),
    }
    priors, expressions = written[kind]()
    return Drawn(kind, priors, probability, optimum(expressions))


def margins(drawn: Drawn) -> dict[str, float]:
    """Return, per precision, the least of certificate minus true gap, over 1 + optimum."""
    least = {}
    for dtype in ("float32", "float64"):
        margin = np.inf
        for solver in SOLVERS:
            for n_iterations in ITERATIONS:
                options = {"tol": 1e-12, "max_iter": n_iterations, "n_threads": 1}
                context = hr.SegSALSA(drawn.priors, solver=solver, dtype=dtype, **options)  # type: ignore[arg-type]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", NotConvergedWarning)
                    history = context.solve(drawn.probability).history
                for point in history:
                    excess = point.gap - (point.objective - drawn.optimum)
                    margin = min(margin, excess / (1 + drawn.optimum))
        least[dtype] = margin
    return least


def main() -> None:
    """Draw, solve, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    table: dict[tuple[str, str], list[float]] = {}
    n_unsolved = 0
    for seed in range(asked.first, asked.first + asked.problems):
        try:
            drawn = draw(seed)
        except (AssertionError, cvxpy.SolverError):  # the conic solver did not reach its tolerance
            n_unsolved += 1
            continue
        for dtype, margin in margins(drawn).items():
            table.setdefault((drawn.name, dtype), []).append(margin)
            if margin < -CONIC:
                sys.stdout.write(f"seed {seed} ({drawn.priors}, {dtype}): {margin:.2e}\n")
    below = 0
    for (name, dtype), least in table.items():
        wrong = sum(margin < -CONIC for margin in least)
        below += wrong
        sys.stdout.write(
            f"{name:17} {dtype}: {len(least)} problems, {wrong} below the true gap, "
            f"least margin {min(least):.1e}\n"
        )
    sys.stdout.write(f"{n_unsolved} problems left out: the conic solver did not solve them\n")
    sys.exit(below > 0)


if __name__ == "__main__":
    main()
