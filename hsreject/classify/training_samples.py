"""Training samples as the sparse regression needs them, and the checks of what the user gave."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from hsreject.errors import InputError
from hsreject.registry import nearest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from hsreject.classify.multinomial import FloatArray


@dataclass(frozen=True)
class TrainingSamples:
    """Distinct samples of positive weight, sorted, with their classes numbered.

    Parameters
    ----------
    features : array (sample, feature)
        Finite features.
    codes : array (sample,)
        Number of each sample's class in `classes`.
    weight : array (sample,)
        Sample weights, positive; those of equal samples added up.
    classes : array (category,)
        The classes, sorted.
    """

    features: FloatArray
    codes: NDArray[np.intp]
    weight: FloatArray
    classes: NDArray[Any]

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
        """Sort the samples and merge equal ones: neither order nor repetition shall matter."""
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
                factor[_place(name, self.classes, "class_weight")] = check_number(
                    f"class_weight of {name!r}", value, above=0
                )
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


def check_number(
    name: str, value: object, *, above: float | None = None, least: float = -np.inf
) -> float:
    """Return the number, or say which range it must lie in."""
    number = float(value) if isinstance(value, Real) else np.nan
    if not np.isfinite(number) or number < least or (above is not None and number <= above):
        wanted = f"above {above:g}" if above is not None else f"at least {least:g}"
        raise InputError(f"{name} must be a number {wanted} (got {value!r}).")
    return number


def check_count(name: str, value: object, *, least: int) -> None:
    """Refuse a value that is not a whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number, at least {least} (got {value!r}).")


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Refuse a value that is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        hint = nearest(value, list(choices)) if isinstance(value, str) else ""
        raise InputError(f"{name} must be one of {', '.join(choices)} (got {value!r}).{hint}")


def given_prior(prior: ArrayLike | Mapping[Any, float], classes: NDArray[Any]) -> FloatArray:
    """Return the class frequencies as given, in the order of `classes` and summing to one."""
    if isinstance(prior, Mapping):
        values = np.zeros(len(classes))
        for name, value in prior.items():
            values[_place(name, classes, "class_prior")] = check_number(
                f"class_prior of {name!r}", value, above=0
            )
    else:
        values = np.asarray(prior, dtype=np.float64)
    if values.shape != classes.shape or not np.isfinite(values).all() or (values <= 0).any():
        raise InputError(
            f"class_prior must give a positive frequency for each of the {len(classes)} classes "
            f"{classes.tolist()} (got {prior!r})."
        )
    return np.asarray(values / values.sum())


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


def _place(name: object, classes: NDArray[Any], option: str) -> int:
    found = np.flatnonzero(classes == name)
    if not len(found):
        raise InputError(
            f"{option} names the class {name!r}, which has no samples. Classes: {classes.tolist()}."
        )
    return int(found[0])
