"""What type checkers make of the public names; ``make lint`` checks this file and the README."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import hsreject as hr


def test_measures_of_a_point_are_numbers() -> None:
    point = hr.OperatingPoint(50, 30, 5, 15)
    assert_type(point.nonrejected_accuracy, float)
    assert_type(point.rejected, float)
    assert_type(point.cost(0.5), float)
    assert point.nonrejected_accuracy + point.cost(0.5) == 0.625 + 0.4


def test_samples_have_the_confidence_that_was_given() -> None:
    reference, label, confidence = np.array([[1, 2]]), np.array([[1, 1]]), np.array([[0.9, 0.2]])
    samples = hr.evaluation_samples(reference, label, confidence)
    assert_type(samples.confidence, NDArray[Any])
    assert samples.confidence.tolist() == [0.9, 0.2]
    assert hr.evaluation_samples(reference, label).confidence is None


class Even(hr.Prior):
    """A prior that is written with public names alone."""

    def bind(self, grid: hr.Grid) -> hr.Term:
        return hr.VectorTV(1.0).bind(grid)


def test_a_prior_is_written_with_public_types() -> None:
    grid = hr.Grid(np.ones((3, 4), dtype=bool), 2, np.dtype("float64"))
    term = Even().bind(grid)
    assert term.value(term.forward(np.ones(grid.shape))) == 0
