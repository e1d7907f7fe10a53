"""The confusion picture: counts in their cells, rejected apart."""

import numpy as np
import pytest

import hsreject as hr
from hsreject.plot import RejectionConfusionDisplay
from tests.plot.drawing import row

REFERENCE = np.array([1, 1, 1, 1, 2, 2])
LABEL = np.array([1, 1, 2, 2, 2, 1])
GONE = np.array([False, False, False, True, False, True])


def test_counts_stand_in_cells_shaded_by_their_share_of_the_row() -> None:
    display = RejectionConfusionDisplay.from_samples(REFERENCE, LABEL, rejected=GONE)
    ax = display.plot(row(1)[0])
    apart = ax.get_xticks()[-1]
    assert apart > 2, "the rejected column stands apart"
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert texts == {(0, 0): "2", (1, 0): "1", (apart, 0): "1", (1, 1): "1", (apart, 1): "1"}
    np.testing.assert_allclose(display.shares, [[0.5, 0.25, 0.25], [0, 0.5, 0.5]])
    kept, rejected = ax.get_images()
    drawn = [np.asarray(image.get_array()) for image in (kept, rejected)]
    np.testing.assert_allclose(np.hstack(drawn), display.shares)
    assert kept.get_cmap().name != rejected.get_cmap().name


def test_names_come_from_the_class_table() -> None:
    table = hr.ClassTable.from_names(["soil", "water", "roof"])
    display = RejectionConfusionDisplay.from_samples(REFERENCE, LABEL, classes=table)
    names = [text.get_text() for text in display.plot(row(1)[0]).get_xticklabels()]
    assert names == ["soil", "water", "roof", "rejected"]
    assert np.isnan(display.shares[2]).all(), "a class without reference has no shares"


def test_a_matrix_without_rejected_column_is_refused() -> None:
    matrix = hr.confusion_matrix(REFERENCE, LABEL).isel(decision=slice(0, 2))
    with pytest.raises(hr.errors.InputError, match="last column"):
        RejectionConfusionDisplay.from_matrix(matrix)
