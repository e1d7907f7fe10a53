"""How well classes that were never trained on are rejected, and what that costs on known ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from sklearn.metrics import roc_auc_score

from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.classify.smlr import SparseMultinomialRegression
from hsreject.context.priors import VectorTV
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.experiments.hold_outs import check_hold_outs, hold_outs_of
from hsreject.features.components import MNF
from hsreject.features.spatial import Smooth
from hsreject.features.transformer import SceneTransformer
from hsreject.measures.inputs import one_fraction
from hsreject.measures.summary import accuracy_at
from hsreject.progress import ProgressCallback, no_progress
from hsreject.registry import check_count
from hsreject.rejection import Novelty, PixelwiseRejector, RankedRejector, SequentialRejector
from hsreject.sampling import sample_per_class
from hsreject.schema import (
    CUBE_DIMS,
    NO_REFERENCE,
    check_dims,
    check_labels,
    check_same_grid,
    valid_pixels,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

INDIAN_PINES_HOLD_OUTS = ((14,), (10, 11), (2,), (5, 6), (8,), (11,))

Confidences = dict[tuple[str, bool], "NDArray[np.floating]"]


def _features() -> tuple[SceneTransformer, ...]:
    return (MNF(30), Smooth(2.0))


def _classifier() -> SparseMultinomialRegression:
    return SparseMultinomialRegression(sparsity=0.01, kernel="rbf")


def _context() -> SegSALSA:
    return SegSALSA(VectorTV(weight=2.0))


@dataclass(frozen=True, eq=False)
class NoveltyExperiment:
    """Holds classes out of the training and asks how early their pixels are rejected.

    The area under the ROC curve (AUROC) is the probability that a pixel of a held-out class has a
    lower confidence than a test pixel of a known class: 0.5 is chance. It is measured for pixelwise
    and sequential rejection, each without and with novelty, and for the novelty p-value alone. What
    novelty costs is measured with nothing held out: the accuracy of the kept pixels.

    Parameters
    ----------
    hold_outs : sequence of sequences of int, optional
        Label values that are unknown together, one entry an experiment; by default each class that
        has data.
    n_per_class : int
        Training pixels a class, at least 1.
    n_seeds : int
        Draws of training pixels, at least 1, with the seeds 0, 1, ...
    features : sequence of scene transformers
        What is done to the cube first; novelty is measured in these features.
    classifier : scikit-learn classifier
    context : SegSALSA
        Of sequential rejection.
    rejected_fraction : float
        At which the accuracy is compared, in [0, 1].

    Examples
    --------
    ::

        cube, labels = hr.load_indian_pines()
        result = NoveltyExperiment(INDIAN_PINES_HOLD_OUTS).run(cube, labels)
        result.novelty_auroc.mean()
    """

    hold_outs: Sequence[Sequence[int]] | None = None
    n_per_class: int = 10
    n_seeds: int = 5
    features: Sequence[SceneTransformer] = field(default_factory=_features)
    classifier: Any = field(default_factory=_classifier)
    context: SegSALSA = field(default_factory=_context)
    rejected_fraction: float = 0.1

    def __post_init__(self) -> None:
        check_count("n_per_class", self.n_per_class, least=1)
        check_count("n_seeds", self.n_seeds, least=1)
        one_fraction(self.rejected_fraction, name="rejected_fraction")
        if self.hold_outs is not None:
            check_hold_outs(self.hold_outs)

    def run(
        self,
        cube: xr.DataArray,
        labels: xr.DataArray,
        *,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return the table of the experiment.

        Parameters
        ----------
        cube : DataArray (band, y, x)
        labels : DataArray of int (y, x)
            Reference labels, 0 where there is none.
        progress : callable
            Called with ("novelty", draws done, draws in all).

        Returns
        -------
        Dataset
            `auroc` (hold_out, seed, rejector, with_novelty), `novelty_auroc` (hold_out, seed),
            `accuracy` (seed, rejector, with_novelty): of the kept pixels with nothing held out;
            `n_unknown` (hold_out): pixels with data of the classes held out.
        """
        cube = check_dims(cube, CUBE_DIMS, name="cube")
        labels = check_labels(labels)
        check_same_grid(cube, labels, names=("cube", "labels"))
        hold_outs = hold_outs_of(self.hold_outs, cube, labels)
        features = cube
        for transformer in self.features:
            features = transformer.fit_transform(features)
        work = [(hold, seed) for hold in ((), *hold_outs) for seed in range(self.n_seeds)]
        rows: dict[tuple[tuple[int, ...], int], Any] = {}
        for done, (hold, seed) in enumerate(work):
            progress("novelty", done, len(work))
            measure = self._unknown_auroc if hold else self._known_accuracy
            rows[hold, seed] = measure(features, labels, hold, seed)
        progress("novelty", len(work), len(work))
        used = np.where(valid_pixels(cube).values, labels.values, NO_REFERENCE)
        n_unknown = [int(np.isin(used, hold).sum()) for hold in hold_outs]
        return self._table(rows, hold_outs).assign(n_unknown=("hold_out", n_unknown))

    def _rank(
        self, features: xr.DataArray, labels: xr.DataArray, hold: tuple[int, ...], seed: int
    ) -> tuple[xr.Dataset, xr.DataArray, list[tuple[str, bool, RankedRejector, xr.Dataset]]]:
        """Return the maps, the test labels of known classes, and the four rejectors to compare."""
        known = labels.where(~labels.isin(hold), NO_REFERENCE).assign_attrs(labels.attrs)
        training, test = sample_per_class(known, self.n_per_class, seed=seed)
        model = SceneClassifier(self.classifier).fit(features, training)
        probability = model.predict_proba(features)
        hidden_field = self.context.solve(probability).hidden_field
        plain = xr.Dataset({"probability": probability, "hidden_field": hidden_field})
        maps = plain.assign(novelty_p_value=Novelty().fit(features, training).p_value(features))
        rejectors: dict[str, RankedRejector] = {
            "pixelwise": PixelwiseRejector(),
            "sequential": SequentialRejector(self.context),
        }
        compared = [
            (name, with_novelty, rejector, maps if with_novelty else plain)
            for name, rejector in rejectors.items()
            for with_novelty in (False, True)
        ]
        return maps, test, compared

    def _known_accuracy(
        self, features: xr.DataArray, labels: xr.DataArray, hold: tuple[int, ...], seed: int
    ) -> dict[tuple[str, bool], float]:
        _, test, compared = self._rank(features, labels, hold, seed)
        return {
            (name, with_novelty): float(
                accuracy_at(rejector.operating_points(maps, test), self.rejected_fraction).item()
            )
            for name, with_novelty, rejector, maps in compared
        }

    def _unknown_auroc(
        self, features: xr.DataArray, labels: xr.DataArray, hold: tuple[int, ...], seed: int
    ) -> dict[tuple[str, bool], float]:
        maps, test, compared = self._rank(features, labels, hold, seed)
        known, unknown = test.values != NO_REFERENCE, np.isin(labels.values, hold)
        found = {
            (name, with_novelty): auroc(
                rejector.rank(maps_)["confidence"].values, known=known, unknown=unknown
            )
            for name, with_novelty, rejector, maps_ in compared
        }
        found["novelty", True] = auroc(maps["novelty_p_value"].values, known=known, unknown=unknown)
        return found

    def _table(
        self,
        rows: dict[tuple[tuple[int, ...], int], Any],
        hold_outs: tuple[tuple[int, ...], ...],
    ) -> xr.Dataset:
        names, seeds, novelty = ("pixelwise", "sequential"), range(self.n_seeds), (False, True)

        def block(hold: tuple[int, ...]) -> list[Any]:
            return [[[rows[hold, s][n, w] for w in novelty] for n in names] for s in seeds]

        alone = [[rows[hold, seed]["novelty", True] for seed in seeds] for hold in hold_outs]
        return xr.Dataset(
            {
                "auroc": (
                    ("hold_out", "seed", "rejector", "with_novelty"),
                    np.array([block(hold) for hold in hold_outs]),
                ),
                "novelty_auroc": (("hold_out", "seed"), np.array(alone)),
                "accuracy": (("seed", "rejector", "with_novelty"), np.array(block(()))),
            },
            coords={
                "hold_out": [", ".join(map(str, hold)) for hold in hold_outs],
                "seed": list(seeds),
                "rejector": list(names),
                "with_novelty": list(novelty),
            },
            attrs={"rejected_fraction": self.rejected_fraction, "n_per_class": self.n_per_class},
        )


def auroc(
    confidence: NDArray[np.floating], *, known: NDArray[np.bool_], unknown: NDArray[np.bool_]
) -> float:
    """Return the probability that an unknown pixel has a lower confidence than a known one.

    Equal confidences count one half; pixels without data do not count. There must be an unknown and
    a known pixel with data.

    Examples
    --------
    >>> confidence = np.array([0.9, 0.5, 0.5, 0.1])
    >>> auroc(confidence, known=confidence > 0.4, unknown=confidence < 0.4)
    1.0
    """
    has_data = ~np.isnan(confidence)
    inside, outside = confidence[known & has_data], confidence[unknown & has_data]
    if not inside.size or not outside.size:
        raise InputError(
            f"AUROC compares known with unknown pixels (with data there are {inside.size} known "
            f"and {outside.size} unknown ones). Give some of both."
        )
    truth = np.r_[np.zeros(inside.size), np.ones(outside.size)]
    return float(roc_auc_score(truth, -np.r_[inside, outside]))
