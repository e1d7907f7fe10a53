"""The stages of a run: each takes the stage before, gives a Dataset, and is kept when finished.

The key of a stage is a hash of its own options, with the code of parts that users wrote, and of the
key of the stage before; the first is a token of the scene. So a key says all that a result depends
on, and every array is hashed once. A stage without a key is not kept, nor are those after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, cast

import numpy as np
import xarray as xr
from dask.base import tokenize
from sklearn.base import clone

from hsreject import __version__
from hsreject.confidence import label_map
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.files import recall
from hsreject.io.netcdf import open_dataset, write_dataset
from hsreject.keys import key_of
from hsreject.pipeline.plan import Plan, SceneModel
from hsreject.pipeline.tuning import TUNED_SECTIONS, label_probability, settled, tune
from hsreject.progress import ProgressCallback
from hsreject.rejection import Novelty, Rejector
from hsreject.rejection.evidence import P_VALUE
from hsreject.schema import NO_REFERENCE, OPERATING_POINT

POOL = "pool"
"""How the names begin of what a model tried by itself."""

_SECONDS = "seconds"


@dataclass(frozen=True)
class Stage:
    """A finished stage: what it gives, and how long it and the stages before it took together."""

    data: xr.Dataset
    key: str | None  # hash of everything that it depends on; None where that cannot be told
    total_seconds: float = 0.0
    model: Any = None  # of a classifier that was fitted just now, not read from a file


@dataclass(frozen=True)
class Stages:
    """The stages on one scene."""

    cube: xr.DataArray  # (band, y, x)
    key: str  # token of the scene and its labels
    folder: Path | None  # where finished stages are kept; None keeps none
    progress: ProgressCallback
    seconds: dict[str, float] = field(
        default_factory=dict
    )  # of each stage, its own alone, with all seeds

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

    def tune(self, plan: Plan, split: Stage, *, name: str, fitted: Any = None) -> Stage:
        """Return the candidates of the tuning with their scores, best first."""
        tuning = plan.tuning
        assert tuning is not None  # noqa: S101 (the caller has looked)
        settings = [chain(*parts) for parts in product(*map(tuning.settings, TUNED_SECTIONS))]
        tried = [(plan.model, plan.context) for plan in map(plan.changed, settings)]
        work = partial(
            tune, plan, self.cube, split.data["train"], fitted=fitted, progress=self.progress
        )
        return self._kept(name, _key(split, tuning, tried), work)

    def classify(
        self,
        model: SceneModel,
        split: Stage,
        *,
        name: str,
        novelty: bool = False,
        fitted: Any = None,
        before: Stage | None = None,
    ) -> Stage:
        """Return the class `probability` of a model fitted to the training pixels.

        With `novelty` there is the `p_value` of every pixel, too. A model that weighs
        candidates of its own leaves what it tried, as `pool_...`. Where the stage `before` has left
        it `fitted`, it is taken as it is.
        """
        done = clone(model) if fitted is None else fitted
        train = split.data["train"]

        def compute() -> xr.Dataset:
            if fitted is None:
                probability = done.fit_predict_proba(self.cube, train, progress=self.progress)
            else:
                probability = done.predict_proba(self.cube)
            tried = getattr(done, "tried_", xr.Dataset())
            names = {str(name): f"{POOL}_{name}" for name in (*tried.dims, *tried.variables)}
            found = tried.rename(names).assign(probability=probability.compute())
            if novelty:
                found[P_VALUE] = Novelty().fit_p_value(self.cube, train)
            return found

        found = self._kept(name, _key(split, clone(model), novelty), compute, before)
        return replace(found, model=done if hasattr(done, "classes_") else None)

    def solve_context(
        self, context: SegSALSA, before: Stage, *, name: str, tuned: Stage | None = None
    ) -> Stage:
        """Return what was known with the `hidden_field` of the context and its `context_label`.

        Where held-out maps of this context have told a temperature, `label_probability` is how
        probable that label is; the field itself only ranks.
        """
        temperature = None if tuned is None else float(tuned.data["temperature"][0])

        def compute() -> xr.Dataset:
            hidden = settled(
                context, before.data["probability"], image=self.cube, progress=self.progress
            )
            found = {"hidden_field": hidden, "context_label": label_map(hidden)}
            if temperature is not None:
                found["label_probability"] = label_probability(hidden, temperature, context)
            return xr.Dataset(found)

        found = self._kept(name, _key(before, context, temperature), compute, before)
        seconds = found.total_seconds + (0.0 if tuned is None else tuned.total_seconds)
        data = before.data.assign(found.data).assign(image=self.cube)
        return replace(found, data=data, total_seconds=seconds)

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

    def maps_at_points(
        self, rejector: Rejector, evidence: Stage, split: Stage, found: xr.Dataset
    ) -> xr.Dataset:
        """Return `label` and `rejected` (operating_point, y, x) where both change along the points.

        A rejector that cannot tell them has the one point that its maps in `found` show.
        """
        keeping: Any = self._keeping(rejector)
        if not hasattr(keeping, "maps_at_points"):
            one = found[["label", "rejected"]].expand_dims(OPERATING_POINT)
            return one.assign_coords(threshold=(OPERATING_POINT, [np.nan]))
        maps: xr.Dataset = keeping.maps_at_points(
            evidence.data, split.data["test"], progress=self.progress
        )
        points = found["failure_probability"].values
        return maps.assign_coords(threshold=(OPERATING_POINT, points))

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
        own = float(data.attrs[_SECONDS])
        self.seconds[name] = self.seconds.get(name, 0.0) + own
        return Stage(data, key, own + (0.0 if before is None else before.total_seconds))


def _key(before: Stage, *options: object) -> str | None:
    """Return the key of a stage after `before`."""
    return None if before.key is None else key_of(before.key, options)
