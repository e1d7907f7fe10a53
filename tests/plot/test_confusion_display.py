"""The confusion picture: counts in their cells, rejected apart."""

import numpy as np
import pytest
from matplotlib.axes import Axes

import hsreject as hr
from hsreject.errors import InputError
from hsreject.plot import RejectionConfusionDisplay, new_row

REFERENCE = np.array([1, 1, 1, 1, 2, 2])
LABEL = np.array([1, 1, 2, 2, 2, 1])
GONE = np.array([False, False, False, True, False, True])


@pytest.fixture
def ax() -> Axes:
    return new_row(1)[1][0]


def test_counts_stand_in_their_cells(ax: Axes) -> None:
    RejectionConfusionDisplay.from_samples(REFERENCE, LABEL, rejected=GONE).plot(ax)
    texts = {(text.get_position(), text.get_text()) for text in ax.texts}
    apart = ax.get_xticks()[-1]
    assert texts == {
        ((0, 0), "2"),
        ((1, 0), "1"),
        ((apart, 0), "1"),
        ((1, 1), "1"),
        ((apart, 1), "1"),
    }
    assert apart > 2, "the rejected column stands apart"


def test_shades_are_shares_of_the_row(ax: Axes) -> None:
    display = RejectionConfusionDisplay.from_samples(REFERENCE, LABEL, rejected=GONE)
    np.testing.assert_allclose(display.shares, [[0.5, 0.25, 0.25], [0, 0.5, 0.5]])
    display.plot(ax)
    kept, rejected = (np.asarray(image.get_array()) for image in ax.get_images())
    np.testing.assert_allclose(np.hstack([kept, rejected]), display.shares)
    assert ax.get_images()[0].get_cmap().name != ax.get_images()[1].get_cmap().name


def test_names_come_from_the_class_table(ax: Axes) -> None:
    table = hr.ClassTable.from_names(["soil", "water", "roof"])
    display = RejectionConfusionDisplay.from_samples(REFERENCE, LABEL, classes=table)
    display.plot(ax)
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert names == ["soil", "water", "roof", "rejected"]
    assert np.isnan(display.shares[2]).all(), "a class without reference has no shares"


def test_a_matrix_without_rejected_column_is_refused() -> None:
    matrix = hr.confusion_matrix(REFERENCE, LABEL).isel(decision=slice(0, 2))
    with pytest.raises(InputError, match="last column"):
        RejectionConfusionDisplay.from_matrix(matrix)
