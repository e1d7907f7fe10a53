import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import InputError
from tests.rejection.scene import CONTEXT, LARGE


@pytest.fixture(scope="module")
def points() -> xr.Dataset:
    rejectors = {
        "pixelwise": hr.PixelwiseRejector(),
        "sequential": hr.SequentialRejector(CONTEXT),
        "joint": hr.JointRejector(CONTEXT, n_points=8),
    }
    return hr.compare_rejectors(rejectors, LARGE.probability, LARGE.test)


def of(points: xr.Dataset, name: str) -> xr.Dataset:
    return points.isel(operating_point=points.rejector.values == name)


def test_every_rejector_is_there_on_the_same_pixels(points) -> None:
    assert list(dict.fromkeys(points.rejector.values)) == ["pixelwise", "sequential", "joint"]
    counts = [points[name] for name in points if "kept" in name or name.endswith("_rejected")]
    assert len(counts) == 4
    assert len(np.unique(sum(counts))) == 1
    for name in ("pixelwise", "sequential", "joint"):
        assert (np.diff(of(points, name).rejected_fraction) >= 0).all()
    assert np.isnan(of(points, "sequential").failure_probability).all()
    assert not np.isnan(of(points, "joint").failure_probability).any()
    # sequential and joint begin with the same labels
    assert of(points, "sequential").overall_accuracy[0] == of(points, "joint").overall_accuracy[0]


def test_the_evaluator_takes_each_rejector(points) -> None:
    for name in ("sequential", "joint"):
        own = of(points, name)
        beta = hr.relative_optimality_pairs(own)
        assert np.allclose(beta, -beta.values.T, equal_nan=True)
        nothing = own.isel(operating_point=0)
        even = hr.break_even_cost(
            own.nonrejected_accuracy,
            own.rejected_fraction,
            nothing.nonrejected_accuracy,
            nothing.rejected_fraction,
        )
        assert float(nothing.rejected_fraction) == 0
        np.testing.assert_allclose(hr.minimum_cost_without_rejection(own), even, atol=1e-9)


@pytest.mark.parametrize(
    ("rejectors", "message"),
    [
        ({}, "at least one"),
        ([hr.PixelwiseRejector()], "map names"),
        ({"a": "pixelwise"}, "'a': 'pixelwise'"),
        ({"a": hr.PixelwiseRejector}, "'a'.*brackets"),
    ],
)
def test_what_is_no_rejector_is_refused(rejectors, message) -> None:
    with pytest.raises(InputError, match=message):
        hr.compare_rejectors(rejectors, np.ones((1, 2, 2)), np.ones((2, 2), dtype=int))


def test_curve_summaries_take_one_rejector_at_a_time(points) -> None:
    expected = hr.PixelwiseRejector().operating_points(LARGE.probability, LARGE.test)
    for summary in (hr.aurc, hr.excess_aurc, lambda table: hr.accuracy_at(table, 0.1)):
        with pytest.raises(InputError, match=r"of 3 \(pixelwise, sequential, joint\)") as refused:
            summary(points)
        advice = str(refused.value).split("Choose one: ")[1].rstrip(".")
        chosen = eval(advice, {"table": points})  # what the message tells to write
        assert summary(chosen) == summary(expected)
    with pytest.raises(InputError, match="one rejector"):
        hr.relative_optimality_pairs(points, n_points=5)
