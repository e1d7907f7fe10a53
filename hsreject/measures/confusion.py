"""Class by class: confusion matrices with rejection, and the agreement of the kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.point import share
from hsreject.schema.class_tree import rows_of
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def confusion_matrix(
    reference: ArrayLike | xr.DataArray,
    label: ArrayLike | xr.DataArray,
    *,
    rejected: ArrayLike | xr.DataArray | None = None,
    sample_weight: ArrayLike | xr.DataArray | None = None,
    classes: ClassTable | None = None,
) -> xr.DataArray:
    """Count how often each class was given which label, with a column for rejected samples.

    Parameters
    ----------
    reference, label : arrays of int, same shape
        True and assigned class of each sample (see :func:`hsreject.evaluation_samples`).
    rejected : array of bool, same shape, optional
        Which samples are rejected; none when not given.
    sample_weight : array of float, same shape, optional
        What each sample stands for; 1 when not given.
    classes : ClassTable, optional
        Which classes the matrix shows, in which order; all that occur when not given.

    Returns
    -------
    DataArray, dims (reference, decision)
        Coordinates are class values; decision 0, the last column, is rejected. With `class_name`
        along `reference` when `classes` are given.

    See Also
    --------
    hsreject.kept_agreement : accuracy and kappa of the kept.
    hsreject.rejection_curve : all classes together, at every threshold.

    Examples
    --------
    >>> from hsreject import confusion_matrix
    >>> matrix = confusion_matrix([1, 1, 2, 2], [1, 2, 2, 2], rejected=[False, True, False, False])
    >>> matrix.values
    array([[1, 0, 1],
           [0, 2, 0]])
    >>> matrix.decision.values
    array([1, 2, 0])
    """
    samples = {"reference": reference, "label": label}
    plain = inputs.same_layout({**samples, "rejected": rejected, "sample_weight": sample_weight})
    truth = inputs.class_values(plain["reference"], name="reference")
    decision = inputs.class_values(plain["label"], name="label")
    table = classes or ClassTable.plain(np.union1d(truth, decision).tolist())
    values = np.array(table.values)
    row, column = _rows(table, truth, "reference"), _rows(table, decision, "label")
    if rejected is not None:
        is_rejected = inputs.rejected_values(plain["rejected"])
        column = np.where(is_rejected, values.size, column)
    shape = (values.size, values.size + 1)
    cell = np.ravel_multi_index((row, column), shape)
    weight = inputs.weight_values(plain["sample_weight"]) if sample_weight is not None else None
    matrix = np.bincount(cell, weights=weight, minlength=shape[0] * shape[1]).reshape(shape)
    coords: dict[str, Any] = {
        schema.REFERENCE: values,
        schema.DECISION: np.append(values, schema.REJECTED),
    }
    if classes is not None:
        coords[schema.CLASS_NAME] = (schema.REFERENCE, list(classes.names))
    return xr.DataArray(
        matrix, dims=(schema.REFERENCE, schema.DECISION), coords=coords, name="confusion_matrix"
    )


def _rows(table: ClassTable, classes: NDArray[np.int64], name: str) -> NDArray[np.intp]:
    """Find the rows of classes in a table; an error names those that it lacks."""
    rows = rows_of(table, classes)
    lacking = np.unique(classes[rows == len(table)])
    if lacking.size:
        raise InputError(
            f"{name} holds classes that are not in the class table: {lacking.tolist()[:10]}. "
            "Give a table with all classes, or none."
        )
    return rows


@dataclass(frozen=True)
class Agreement:
    """Agreement of the kept samples with the reference.

    Attributes
    ----------
    n_kept : float
        Number (or weight) of samples kept.
    overall_accuracy : float
        Share of kept samples that are accurate: the paper's A. NaN when nothing is kept.
    average_accuracy : float
        Mean over the classes of the share of their kept samples that are accurate. Classes of which
        nothing is kept have no share and are left out; `unkept_classes` lists them.
    kappa : float
        Cohen's kappa of the kept samples; NaN when chance alone would agree completely.
    unkept_classes : tuple of int
        Classes that occur in the reference but were rejected completely.
    """

    n_kept: float
    overall_accuracy: float
    average_accuracy: float
    kappa: float
    unkept_classes: tuple[int, ...]


def kept_agreement(matrix: xr.DataArray) -> Agreement:
    """Compute overall accuracy, average accuracy and kappa of the kept samples.

    Parameters
    ----------
    matrix : DataArray, dims (reference, decision)
        Of :func:`confusion_matrix`.

    Returns
    -------
    Agreement
        Accuracies and kappa of the kept, and the classes of which nothing is kept.

    See Also
    --------
    hsreject.confusion_matrix : the counts behind it.
    hsreject.operating_point : the measures of rejection.

    Examples
    --------
    >>> from hsreject import confusion_matrix, kept_agreement
    >>> matrix = confusion_matrix([1, 1, 2, 2], [1, 2, 2, 2], rejected=[False, True, False, False])
    >>> kept_agreement(matrix).kappa
    1.0
    """
    matrix = matrix.transpose(schema.REFERENCE, schema.DECISION)
    counts = matrix.values
    kept_counts = matrix.sel({schema.DECISION: matrix[schema.REFERENCE].values}).values
    n = kept_counts.sum()
    per_reference, per_decision = kept_counts.sum(axis=1), kept_counts.sum(axis=0)
    accurate = np.diagonal(kept_counts)
    occurs = per_reference > 0
    observed = share(accurate.sum(), n)
    by_chance = float(share(per_reference, n) @ share(per_decision, n))
    kappa = (observed - by_chance) / (1 - by_chance) if by_chance < 1 else float("nan")
    shares = accurate[occurs] / per_reference[occurs]
    unkept = matrix[schema.REFERENCE].values[~occurs & (counts.sum(axis=1) > 0)]
    return Agreement(
        n_kept=n.item(),
        overall_accuracy=observed,
        average_accuracy=float(shares.mean()) if shares.size else float("nan"),
        kappa=kappa,
        unkept_classes=tuple(int(value) for value in unkept),
    )
