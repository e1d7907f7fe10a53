"""The stages of a run: each takes the stage before, gives a Dataset, and is kept when finished.

The key of a stage is a hash of its own options, with the code of parts that users wrote, and of the
key of the stage before; the first is a token of the scene. So a key says all that a result depends
on, and every array is hashed once. A stage without a key is not kept, nor are those after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
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
from hsreject.keys import key_of
from hsreject.pipeline.plan import Plan
from hsreject.pipeline.tuning import TUNED_SECTIONS, tune
from hsreject.progress import ProgressCallback
from hsreject.rejection import Rejector
from hsreject.schema import NO_REFERENCE

_SECONDS = "seconds"


@dataclass(frozen=True)
class Stage:
    """A finished stage: what it gives, and how long it took, the stages before included."""

    data: xr.Dataset
    key: str | None  # hash of everything that it depends on; None where that cannot be told
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
        tuning = plan.tuning
        assert tuning is not None  # noqa: S101 (the caller has looked)
        settings = [chain(*parts) for parts in product(*map(tuning.settings, TUNED_SECTIONS))]
        tried = [(plan.model, plan.context) for plan in map(plan.changed, settings)]
        work = partial(
            tune, plan, self.cube, split.data["train"], seed=seed, progress=self.progress
        )
        return self._kept("choosing", _key(split, tuning, tried, seed), work)

    def classify(self, model: SceneClassifier, split: Stage, *, name: str = "classifier") -> Stage:
        """Return the class `probability` of a model fitted to the training pixels."""

        def compute() -> xr.Dataset:
            fitted: SceneClassifier = clone(model)
            return fitted.fit_predict_proba(self.cube, split.data["train"]).compute().to_dataset()

        return self._kept(name, _key(split, clone(model)), compute)

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

        found = self._kept("context", _key(before, context), compute, before)
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
        key = _key(evidence, type(rejector), options, fraction)
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
        key: str | None,
        compute: Callable[[], xr.Dataset],
        before: Stage | None = None,
    ) -> Stage:
        """Return a stage from its file, or compute it and keep it there."""

        def timed() -> xr.Dataset:
            begun = time.perf_counter()
            result = compute()
            return result.assign_attrs({_SECONDS: time.perf_counter() - begun})

        path = self.folder / f"{name}-{key}.nc" if self.folder and key else None
        self.progress(name, 0, 1)
        data = recall(path, timed, read=lambda kept: open_dataset(kept).load(), write=write_dataset)
        self.progress(name, 1, 1)
        seconds = float(data.attrs[_SECONDS])
        return Stage(data, key, seconds + (0.0 if before is None else before.seconds))


def _key(before: Stage, *options: object) -> str | None:
    """Return the key of a stage after `before`."""
    return None if before.key is None else key_of(before.key, options)
