from itertools import pairwise

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.confidence import CONFIDENCES
from hsreject.errors import InputError
from tests.rejection.scene import make_scene

CONTEXT = hr.SegSALSA(hr.VectorTV(weight=0.3))


@pytest.mark.parametrize("confidence", list(CONFIDENCES))
def test_it_thresholds_the_confidence_of_the_context(confidence) -> None:
    scene = make_scene()
    result = CONTEXT.solve(scene.probability)
    maps = hr.SequentialRejector(CONTEXT, confidence=confidence).reject(
        scene.probability, fraction=0.25
    )
    xr.testing.assert_equal(maps.label, result.label)
    xr.testing.assert_equal(maps.confidence, result.confidence(confidence))
    assert abs(maps.attrs["rejected_fraction"] - 0.25) < 0.01


def test_a_known_hidden_field_is_not_solved_again() -> None:
    scene = make_scene()
    hidden_field = CONTEXT.solve(scene.probability).hidden_field
    known = xr.Dataset({"probability": scene.probability, "hidden_field": hidden_field})

    def refuse(stage: str, done: float, total: float | None) -> None:
        raise AssertionError

    rejector = hr.SequentialRejector(CONTEXT)
    xr.testing.assert_equal(
        rejector.reject(known, fraction=0.1, progress=refuse),
        rejector.reject(scene.probability, fraction=0.1),
    )


def test_larger_fractions_reject_more_of_the_same() -> None:
    scene = make_scene()
    points = [
        hr.SequentialRejector(CONTEXT).reject(scene.probability, fraction=fraction).rejected.values
        for fraction in np.linspace(0, 1, 9)
    ]
    for fewer, more in pairwise(points):
        assert (more | ~fewer).all()


def test_what_it_needs_is_declared() -> None:
    assert hr.SequentialRejector.needs_context
    assert hr.SequentialRejector.has_threshold
    assert hr.SequentialRejector(CONTEXT).halo == CONTEXT.halo
    assert hr.PixelwiseRejector.has_threshold
    assert hr.PixelwiseRejector().halo == 0


def test_image_edges_reach_the_context() -> None:
    scene = make_scene()
    image = xr.DataArray(
        np.random.default_rng(0).normal(size=(2, 14, 15)), dims=("band", "y", "x")
    ) + xr.zeros_like(scene.reference)
    rejector = hr.SequentialRejector(hr.SegSALSA(hr.VectorTV(weight=1.0, edges="image")))
    with pytest.raises(InputError, match="image"):
        rejector.reject(scene.probability, fraction=0.1)
    evidence = xr.Dataset({"probability": scene.probability, "image": image})
    assert rejector.reject(evidence, fraction=0.1).rejected.any()
