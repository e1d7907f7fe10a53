import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.confidence import CONFIDENCES
from hsreject.errors import InputError
from tests.rejection.scene import CONTEXT, SMALL


@pytest.mark.parametrize("confidence", list(CONFIDENCES))
def test_it_thresholds_the_confidence_of_the_context(confidence) -> None:
    result = CONTEXT.solve(SMALL.probability)
    maps = hr.SequentialRejector(CONTEXT, confidence=confidence).reject(
        SMALL.probability, fraction=0.25
    )
    xr.testing.assert_equal(maps.label, result.label)
    expected = CONFIDENCES.create(confidence)(result.hidden_field, probability=result.probability)
    xr.testing.assert_equal(maps.confidence, expected)
    assert abs(maps.attrs["rejected_fraction"] - 0.25) < 0.01


def test_a_known_hidden_field_is_not_solved_again() -> None:
    hidden_field = CONTEXT.solve(SMALL.probability).hidden_field
    known = xr.Dataset({"probability": SMALL.probability, "hidden_field": hidden_field})

    def refuse(stage: str, done: float, total: float | None) -> None:
        raise AssertionError

    rejector = hr.SequentialRejector(CONTEXT)
    xr.testing.assert_equal(
        rejector.reject(known, fraction=0.1, progress=refuse),
        rejector.reject(SMALL.probability, fraction=0.1),
    )


def test_a_prior_is_not_a_context() -> None:
    with pytest.raises(InputError, match="got VectorTV"):
        hr.SequentialRejector(hr.VectorTV(1.0))


def test_image_edges_reach_the_context() -> None:
    image = xr.DataArray(
        np.random.default_rng(0).normal(size=(2, 14, 15)), dims=("band", "y", "x")
    ) + xr.zeros_like(SMALL.reference)
    rejector = hr.SequentialRejector(hr.SegSALSA(hr.VectorTV(weight=1.0, edges="image")))
    with pytest.raises(InputError, match="image"):
        rejector.reject(SMALL.probability, fraction=0.1)
    evidence = xr.Dataset({"probability": SMALL.probability, "image": image})
    assert rejector.reject(evidence, fraction=0.1).rejected.any()
