"""The stages of a run: each takes the stage before, gives a Dataset, and is kept when finished.

The key of a stage is a token of its own options and of the key of the stage before; the first is a
token of the scene. So a key says all that a result depends on, and every array is hashed once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import xarray as xr
from dask.base import tokenize
from sklearn.base import clone

from hsreject import __version__
from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.files import recall
from hsreject.io.netcdf import open_dataset, write_dataset
from hsreject.pipeline.plan import Plan
from hsreject.pipeline.tuning import TUNED_SECTIONS, tune
from hsreject.progress import ProgressCallback
from hsreject.rejection import Novelty, Rejector
from hsreject.rejection.evidence import CLASS_P_VALUE
from hsreject.schema import NO_REFERENCE

_SECONDS = "seconds"


@dataclass(frozen=True)
class Stage:
    """A finished stage: what it gives, and how long it took, the stages before included."""

    data: xr.Dataset
    key: str  # token of everything that it depends on
    seconds: float = 0.0


@dataclass(frozen=True)
class Stages:
    """The stages on one scene."""

    cube: xr.DataArray  # (band, y, x)
    key: str  # token of the scene and its labels
    folder: Path | None  # where finished stages are kept; None keeps none
    progress: ProgressCallback

    def split(self, plan: Plan, labels: xr.DataArray, seed: int) -> Stage:
        """Return `train` and `test`, the labels of the pixels to learn from and to evaluate on."""
        train, test = plan.sampling(labels, seed=seed)
        if not (test != NO_REFERENCE).any():
            raise InputError(
                "The sampling leaves no test pixel, so nothing can be evaluated. "
                "Draw fewer training pixels."
            )
        data = xr.Dataset({"train": train, "test": test})
        return Stage(data, tokenize(__version__, self.key, data))

    def tune(self, plan: Plan, split: Stage, seed: int) -> Stage:
        """Return the candidates of the tuning with their scores, best first."""
        options = [plan.document.get(name) for name in TUNED_SECTIONS], plan.tuning, seed
        work = partial(
            tune, plan, self.cube, split.data["train"], seed=seed, progress=self.progress
        )
        return self._kept("choosing", tokenize(split.key, options), work)

    def classify(
        self,
        model: SceneClassifier,
        split: Stage,
        *,
        name: str = "classifier",
        novelty: bool = False,
    ) -> Stage:
        """Return the class `probability` of a model fitted to the training pixels.

        With `novelty` there is the `class_p_value` of the training pixels, too.
        """

        def compute() -> xr.Dataset:
            fitted: SceneClassifier = clone(model)
            train = split.data["train"]
            found = fitted.fit_predict_proba(self.cube, train).compute().to_dataset()
            if novelty:
                features = fitted.transform(self.cube)
                found[CLASS_P_VALUE] = Novelty().fit(features, train).p_value(features).compute()
            return found

        return self._kept(name, tokenize(split.key, clone(model), novelty), compute)

    def solve_context(self, context: SegSALSA, before: Stage) -> Stage:
        """Return what was known with the `hidden_field` of the context and its `context_label`."""

        def compute() -> xr.Dataset:
            result = context.solve(
                before.data["probability"], image=self.cube, progress=self.progress
            )
            return xr.Dataset(
                {"hidden_field": result.hidden_field, "context_label": result.label},
                attrs={
                    "objective": result.objective,
                    "gap": result.gap,
                    "n_iterations": result.n_iterations,
                    "converged": int(result.converged),
                },
            )

        found = self._kept("context", tokenize(before.key, context), compute, before)
        return replace(found, data=before.data.assign(found.data).assign(image=self.cube))

    def reject(
        self, name: str, rejector: Rejector, evidence: Stage, split: Stage, fraction: float
    ) -> Stage:
        """Return the operating points of a rejector on the test pixels, and maps at `fraction`."""

        def compute() -> xr.Dataset:
            points, maps = self._keeping(rejector).points_and_maps(
                evidence.data, split.data["test"], fraction=fraction, progress=self.progress
            )
            return maps.drop_attrs(deep=False).assign(points)

        indifferent = rejector.indifferent_options
        options = {name: value for name, value in vars(rejector).items() if name not in indifferent}
        key = tokenize(evidence.key, type(rejector), options, fraction)
        return self._kept(f"rejection-{name}", key, compute, evidence)

    def _keeping(self, rejector: Rejector) -> Rejector:
        """Return the rejector; one that can keep its solves does so beside the stages."""
        if self.folder is None or "store" not in rejector.indifferent_options:
            return rejector
        storing: Any = rejector
        return cast("Rejector", replace(storing, store=storing.store or self.folder / "joint"))

    def _kept(
        self,
        name: str,
        key: str,
        compute: Callable[[], xr.Dataset],
        before: Stage | None = None,
    ) -> Stage:
        """Return a stage from its file, or compute it and keep it there."""

        def timed() -> xr.Dataset:
            begun = time.perf_counter()
            result = compute()
            return result.assign_attrs({_SECONDS: time.perf_counter() - begun})

        path = None if self.folder is None else self.folder / f"{name}-{key}.nc"
        self.progress(name, 0, 1)
        data = recall(path, timed, read=lambda kept: open_dataset(kept).load(), write=write_dataset)
        self.progress(name, 1, 1)
        seconds = float(data.attrs[_SECONDS])
        return Stage(data, key, seconds + (0.0 if before is None else before.seconds))
