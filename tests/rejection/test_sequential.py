from itertools import pairwise

import numpy as np
import pytest
import xarray as xr

from hsreject.confidence import CONFIDENCES
from hsreject.context.priors import VectorTV
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.rejection import SequentialRejector
from tests.rejection.scene import make_scene

CONTEXT = SegSALSA(VectorTV(weight=0.3))


@pytest.mark.parametrize("confidence", list(CONFIDENCES))
def test_it_thresholds_the_confidence_of_the_context(confidence) -> None:
    scene = make_scene()
    result = CONTEXT.solve(scene.probability)
    maps = SequentialRejector(CONTEXT, confidence=confidence).reject(
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

    rejector = SequentialRejector(CONTEXT)
    xr.testing.assert_equal(
        rejector.reject(known, fraction=0.1, progress=refuse),
        rejector.reject(scene.probability, fraction=0.1),
    )


def test_larger_fractions_reject_more_of_the_same() -> None:
    scene = make_scene()
    points = [
        SequentialRejector(CONTEXT).reject(scene.probability, fraction=fraction).rejected.values
        for fraction in np.linspace(0, 1, 9)
    ]
    for fewer, more in pairwise(points):
        assert (more | ~fewer).all()


def test_image_edges_reach_the_context() -> None:
    scene = make_scene()
    image = xr.DataArray(
        np.random.default_rng(0).normal(size=(2, 14, 15)), dims=("band", "y", "x")
    ) + xr.zeros_like(scene.reference)
    rejector = SequentialRejector(SegSALSA(VectorTV(weight=1.0, edges="image")))
    with pytest.raises(InputError, match="needs the image"):
        rejector.reject(scene.probability, fraction=0.1)
    evidence = xr.Dataset({"probability": scene.probability, "image": image})
    assert rejector.reject(evidence, fraction=0.1).rejected.any()
