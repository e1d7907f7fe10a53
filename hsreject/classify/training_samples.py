"""Training samples as the sparse regression needs them: checked, and in folds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from hsreject.errors import InputError
from hsreject.registry import check_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from hsreject.classify.multinomial import FloatArray


@dataclass(frozen=True)
class TrainingSamples:
    """Distinct samples of positive weight, sorted, with their classes numbered."""

    features: FloatArray  # (sample, feature), finite
    codes: NDArray[np.intp]  # (sample,): number of the class in `classes`
    weight: FloatArray  # (sample,), positive; those of equal samples added up
    classes: NDArray[Any]  # (category,), sorted

    @classmethod
    def checked(
        cls, features: FloatArray, labels: NDArray[Any], weight: ArrayLike | None
    ) -> TrainingSamples:
        """Return the samples, or say what is wrong with them."""
        check_classification_targets(labels)
        check_finite(features)
        classes, codes = np.unique(labels, return_inverse=True)
        given = np.ones(len(codes)) if weight is None else _checked_weight(weight, len(codes))
        used = given > 0
        empty = np.bincount(codes, given, minlength=len(classes)) <= 0
        if len(classes) < 2:
            raise InputError(
                f"Training needs samples of at least two classes (got one class, {classes[0]!r})."
            )
        if empty.any():
            raise InputError(
                f"Every class needs a sample of positive weight (the weight is zero in all samples "
                f"of class {', '.join(map(repr, classes[empty].tolist()))}). Remove these samples, "
                "or give them weight."
            )
        return cls._merged(features[used], codes[used], given[used], classes)

    @classmethod
    def _merged(
        cls,
        features: FloatArray,
        codes: NDArray[np.intp],
        weight: FloatArray,
        classes: NDArray[Any],
    ) -> TrainingSamples:
        """Sort the samples and merge equal ones, so that neither order nor repetition matters."""
        order = np.lexsort((codes, *features.T[::-1]))
        features, codes, weight = features[order], codes[order], weight[order]
        new = np.ones(len(codes), dtype=bool)
        new[1:] = (features[1:] != features[:-1]).any(axis=1) | (codes[1:] != codes[:-1])
        first = np.flatnonzero(new)
        return cls(features[first], codes[first], np.add.reduceat(weight, first), classes)

    def weights_with(self, class_weight: Mapping[Any, float] | str | None) -> FloatArray:
        """Return the sample weights times the weights of their classes."""
        factor = np.ones(len(self.classes))
        if isinstance(class_weight, Mapping):
            for name, value in class_weight.items():
                found = np.flatnonzero(self.classes == name)
                if not len(found):
                    raise InputError(
                        f"class_weight names the class {name!r}, which has no samples. "
                        f"Classes: {self.classes.tolist()}."
                    )
                factor[found] = check_number(f"class_weight of {name!r}", value, above=0)
        elif class_weight == "balanced":
            factor = self.weight.sum() / (len(self.classes) * np.bincount(self.codes, self.weight))
        elif class_weight is not None:
            raise InputError(
                f"class_weight must be None, 'balanced' or a mapping from class to weight "
                f"(got {class_weight!r})."
            )
        return self.weight * factor[self.codes]

    def folds(self, n_folds: int) -> NDArray[np.intp]:
        """Deal the samples of each class out to folds, in their sorted order.

        The only sample of a class gets -1: it is never held out. Nothing is random.
        """
        fold = np.full(len(self.codes), -1)
        for code in range(len(self.classes)):
            members = np.flatnonzero(self.codes == code)
            if len(members) > 1:
                fold[members] = np.arange(len(members)) % n_folds
        if fold.max() < 0:
            raise InputError(
                "Cross-validation needs a class with at least two samples (every class has one). "
                "Give more samples, or fixed parameters instead of cross-validated ones."
            )
        return fold

    def subset(self, chosen: NDArray[np.bool_]) -> TrainingSamples:
        """Return some of the samples, with all classes."""
        return TrainingSamples(
            self.features[chosen], self.codes[chosen], self.weight[chosen], self.classes
        )


def check_finite(features: NDArray[Any]) -> None:
    """Refuse features that are not finite numbers."""
    bad = ~np.isfinite(features).all(axis=1)
    if bad.any():
        what = "NaN" if np.isnan(features[bad]).any() else "inf"
        raise InputError(
            f"Features must be finite (found {what} in {bad.sum()} of {len(bad)} samples). "
            "Leave pixels without data out before."
        )


def _checked_weight(weight: ArrayLike, n_samples: int) -> FloatArray:
    values = np.asarray(weight, dtype=np.float64)
    if values.shape != (n_samples,):
        raise InputError(
            f"sample_weight must hold one weight for each of the {n_samples} samples "
            f"(got the shape {values.shape})."
        )
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError("sample_weight must be finite and not negative.")
    return values
