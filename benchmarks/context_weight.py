"""Does the chosen context weight pay? ``python -m benchmarks.context_weight --seeds 30``.

With ``context = "auto"`` cross-validation on the training pixels chooses the weight of the context,
which may be 0. On every draw the map with that weight is compared with those of weight 0 and of
weight 1: overall accuracy, and accuracy when a tenth of the test pixels is rejected.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import xarray as xr
from sklearn.base import clone

from benchmarks.results import Answer, Task, figures_of, scenes
from hsreject.errors import HsrejectWarning
from hsreject.pipeline.plan import make_plan
from hsreject.pipeline.tuning import tune

FIXED = (0.0, 1.0)
"""The weights that the chosen one is compared with."""


def measure(task: Task) -> dict[str, list[float]]:
    """Return the chosen weight, and OA and A(0.1) in percent with it and with each fixed weight."""
    plan = make_plan({"scene": (task.cube, task.test), "context": "auto"})
    model = clone(plan.model)
    probability = model.fit_predict_proba(task.cube, task.train).compute()
    choice = float(tune(plan, task.cube, task.train, fitted=model)["weight"][0])
    maps = xr.Dataset({"probability": probability, "image": task.cube})
    rows = {}
    for weight in {*FIXED, choice}:
        ranked = plan.with_weight(weight).ranking.rank(maps)
        answer = Answer(ranked.label, ranked.confidence, is_probability=False)
        rows[f"{weight:g}"] = figures_of(answer, task.test)[:2]
    return {"weight": [choice], "chosen": rows[f"{choice:g}"], **rows}


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=30, help="how many draws (from --first on)")
    parser.add_argument("--first", type=int, default=900, help="the first seed")
    parser.add_argument("--enmap", nargs=2, metavar=("CUBE", "LABELS"), help="a second scene")
    parser.add_argument("--scenes", nargs="*", default=["random", "blocks"], help="ends of names")
    return parser.parse_args()


def main() -> None:
    """Measure, and print a table of paired differences."""
    asked = options()
    seeds = range(asked.first, asked.first + asked.seeds)
    print(f"Chosen weight minus a fixed one, in points, seeds {seeds[0]} to {seeds[-1]}\n")
    print("| scene | weights chosen | against | OA | A(0.1) |\n|---|---|---|---|---|", flush=True)
    for title, _, split in scenes(asked.enmap):
        if not title.endswith(tuple(asked.scenes)):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HsrejectWarning)
            draws = [measure(split(seed)) for seed in seeds]
        values, counts = np.unique([one["weight"][0] for one in draws], return_counts=True)
        taken = ", ".join(f"{value:g}: {n}" for value, n in zip(values, counts, strict=True))
        for fixed in FIXED:
            gain = np.array([np.subtract(one["chosen"], one[f"{fixed:g}"]) for one in draws])
            error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
            columns = [f"{m:+.2f} ± {e:.2f}" for m, e in zip(gain.mean(axis=0), error, strict=True)]
            print(f"| {title} | {taken} | {fixed:g} | {' | '.join(columns)} |", flush=True)


if __name__ == "__main__":
    main()
