"""The stages of one run: each takes labelled objects, gives a Dataset and is kept when finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import xarray as xr

from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.context.segsalsa import SegSALSA
from hsreject.fingerprint import fingerprint
from hsreject.pipeline.store import StageStore
from hsreject.pipeline.tuning import TUNED_SECTIONS, Tuning, tune
from hsreject.progress import ProgressCallback
from hsreject.rejection import JointRejector, Rejector

SECONDS = "seconds"


@dataclass(frozen=True)
class Stages:
    """The stages on one scene, their results kept in a store.

    Parameters
    ----------
    cube : DataArray (band, y, x)
        The scene.
    identity : str
        Fingerprint of the scene and its labels: what every stage depends on.
    store : StageStore
        Where finished stages are kept.
    progress : callable
        Told how far each stage is.
    """

    cube: xr.DataArray
    identity: str
    store: StageStore
    progress: ProgressCallback

    def tuning(
        self, document: Mapping[str, Any], tuning: Tuning, train: xr.DataArray, *, seed: int
    ) -> xr.Dataset:
        """Return the candidates of the tuning with their scores, best first."""

        def compute() -> xr.Dataset:
            return tune(document, tuning, self.cube, train, seed=seed, progress=self.progress)

        tuned = {name: document.get(name) for name in TUNED_SECTIONS}
        key = fingerprint("tuning", self.identity, tuned, tuning, train, seed)
        return self._done("choosing", key, compute)

    def probability(self, model: SceneClassifier, train: xr.DataArray, *, stage: str) -> xr.Dataset:
        """Return the class `probability` of a model fitted to the training pixels."""

        def compute() -> xr.Dataset:
            return model.fit(self.cube, train).predict_proba(self.cube).compute().to_dataset()

        key = fingerprint(stage, self.identity, model.get_params(), train)
        return self._done(stage, key, compute)

    def hidden_field(self, context: SegSALSA, probability: xr.DataArray) -> xr.Dataset:
        """Return the `hidden_field` and the `label` of the context."""

        def compute() -> xr.Dataset:
            result = context.solve(probability, image=self.cube, progress=self.progress)
            return xr.Dataset(
                {"hidden_field": result.hidden_field, "label": result.label},
                attrs={
                    "objective": result.objective,
                    "gap": result.gap,
                    "n_iterations": result.n_iterations,
                    "converged": int(result.converged),
                },
            )

        return self._done("context", fingerprint(self.identity, context, probability), compute)

    def rejection(
        self, name: str, rejector: Rejector, evidence: xr.Dataset, test: xr.DataArray
    ) -> xr.Dataset:
        """Return the operating points of a rejector on the test pixels."""

        def compute() -> xr.Dataset:
            return self._keeping(rejector).operating_points(evidence, test, progress=self.progress)

        key = fingerprint(name, self.identity, _rule_of(rejector), evidence, test)
        return self._done(f"rejection-{name}", key, compute)

    def maps(
        self,
        name: str,
        rejector: Rejector,
        evidence: xr.Dataset,
        fraction: float,
        points: xr.Dataset,
    ) -> xr.Dataset:
        """Return the maps of a rejector, its operating points known, at about `fraction`."""

        def compute() -> xr.Dataset:
            return self._keeping(rejector).reject(
                evidence, fraction=fraction, progress=self.progress
            )

        key = fingerprint(name, self.identity, _rule_of(rejector), evidence, fraction, points)
        return self._done(f"maps-{name}", key, compute)

    def _keeping(self, rejector: Rejector) -> Rejector:
        """Return the rejector; joint rejection keeps its solves beside the stages."""
        if not isinstance(rejector, JointRejector) or self.store.folder is None:
            return rejector
        return replace(rejector, store=rejector.store or self.store.folder / "joint")

    def _done(self, stage: str, key: str, compute: Callable[[], xr.Dataset]) -> xr.Dataset:
        self.progress(stage, 0, 1)
        result = self.store.recall(stage, key, lambda: _timed(compute))
        self.progress(stage, 1, 1)
        return result


def _rule_of(rejector: Rejector) -> Rejector:
    """Return the rejector without what changes nothing about its result."""
    if not isinstance(rejector, JointRejector):
        return rejector
    return replace(rejector, store=None, n_workers=None)


def _timed(compute: Callable[[], xr.Dataset]) -> xr.Dataset:
    """Return the result with the seconds it took among its attributes."""
    begun = time.perf_counter()
    result = compute()
    return result.assign_attrs({SECONDS: time.perf_counter() - begun})
