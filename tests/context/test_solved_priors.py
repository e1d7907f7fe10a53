"""What the solution of every prior must satisfy, by its line in the registry."""

from __future__ import annotations

import numpy as np
import pytest

import hsreject as hr
from hsreject.context.prior import Grid
from hsreject.context.priors import PRIORS
from hsreject.context.segsalsa import SegSALSAResult
from tests.context.scenes import example_image, random_probability, regions, with_hole

every_prior = pytest.mark.parametrize("name", PRIORS)
SCENE = regions((3, 9, 12), seed=1)
IMAGE = example_image((5, 9, 12), seed=2)


def solved(
    name: str, weight: float, probability: np.ndarray, image: np.ndarray = IMAGE
) -> SegSALSAResult:
    # the optimum to 1e-7, so that answers may be compared to 1e-6
    prior = PRIORS.create(name, weight=weight)
    segsalsa = hr.SegSALSA(prior, tol=1e-7, dtype="float64", max_iter=20_000)
    result = segsalsa.solve(probability, image=image)
    assert result.converged
    return result


@every_prior
def test_weight_zero_is_the_data_alone(name: str) -> None:
    result = solved(name, 0.0, SCENE)
    assert result.objective == pytest.approx(-np.log(SCENE.max(axis=0)).sum(), rel=1e-6)
    np.testing.assert_array_equal(result.label, SCENE.argmax(axis=0) + 1)


@every_prior
def test_a_huge_weight_leaves_nothing_to_the_prior(name: str) -> None:
    # a constant field; with graph TV one per segment, where segments do not overlap in a chain
    result = solved(name, 1e3, random_probability(SCENE.shape, seed=3))
    grid = Grid(np.ones(SCENE.shape[1:], bool), len(SCENE), np.dtype(float), IMAGE)
    term = PRIORS.create(name).bind(grid)
    assert term.value(term.forward(result.hidden_field.transpose(1, 0, 2))) < 1e-4


@every_prior
def test_permuting_classes_permutes_the_answer(name: str) -> None:
    order = [2, 0, 1]
    first, second = solved(name, 0.7, SCENE), solved(name, 0.7, SCENE[order])
    assert second.objective == pytest.approx(first.objective, rel=1e-6)
    clear = np.ptp(np.sort(first.hidden_field, axis=0)[-2:], axis=0) > 0.05
    labels = np.array([1, 2, 3])[np.array(order)[second.label - 1]]
    np.testing.assert_array_equal(labels[clear], first.label[clear])


@every_prior
def test_a_frame_without_data_changes_nothing(name: str) -> None:
    margin = ((0, 0), (2, 1), (1, 3))
    first = solved(name, 0.7, SCENE)
    framed = solved(
        name,
        0.7,
        np.pad(SCENE, margin, constant_values=np.nan),
        np.pad(IMAGE, margin, constant_values=-99.0),
    )
    assert framed.objective == pytest.approx(first.objective, rel=1e-6)
    inside = framed.hidden_field[:, 2:-1, 1:-3]
    # objectives equal to 1e-7 bound fields less tightly
    np.testing.assert_allclose(inside, first.hidden_field, atol=0.02)


@every_prior
def test_what_stands_in_the_image_where_there_is_no_data_changes_nothing(name: str) -> None:
    valid = with_hole(9, 12)
    probability = np.where(valid, SCENE, np.nan)
    fields = [
        solved(name, 0.7, probability, np.where(valid, IMAGE, filler)).hidden_field
        for filler in (0.0, 1e6, np.nan)
    ]
    np.testing.assert_array_equal(fields[0], fields[1])
    np.testing.assert_array_equal(fields[0], fields[2])
