import numpy as np
import pytest
import xarray as xr

from hsreject.context.priors import VectorTV
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.measures.cost import break_even_cost, minimum_cost_without_rejection
from hsreject.measures.optimality import relative_optimality, relative_optimality_pairs
from hsreject.measures.summary import accuracy_at, aurc, excess_aurc
from hsreject.rejection import (
    JointRejector,
    PixelwiseRejector,
    SequentialRejector,
    compare_rejectors,
)
from tests.rejection.scene import make_scene

CONTEXT = SegSALSA(VectorTV(weight=0.3))


@pytest.fixture(scope="module")
def points() -> xr.Dataset:
    scene = make_scene(shape=(30, 33))
    rejectors = {
        "pixelwise": PixelwiseRejector(),
        "sequential": SequentialRejector(CONTEXT),
        "joint": JointRejector(CONTEXT, n_points=8),
    }
    return compare_rejectors(rejectors, scene.probability, scene.test)


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
        beta = relative_optimality_pairs(own)
        assert np.allclose(beta, -beta.values.T, equal_nan=True)
        nothing = own.isel(operating_point=0)
        even = break_even_cost(
            own.nonrejected_accuracy,
            own.rejected_fraction,
            nothing.nonrejected_accuracy,
            nothing.rejected_fraction,
        )
        assert float(nothing.rejected_fraction) == 0
        np.testing.assert_allclose(minimum_cost_without_rejection(own), even, atol=1e-9)


def test_rejectors_compare_with_each_other(points) -> None:
    joint, sequential = of(points, "joint")[{"operating_point": 4}], of(points, "sequential")
    middle = sequential[{"operating_point": sequential.sizes["operating_point"] // 3}]
    arguments = (
        joint.nonrejected_accuracy.item(),
        joint.rejected_fraction.item(),
        middle.nonrejected_accuracy.item(),
        middle.rejected_fraction.item(),
    )
    beta, rho = relative_optimality(*arguments), break_even_cost(*arguments)
    more = arguments[1] > arguments[3]
    assert rho == pytest.approx((beta + 1) / 2 if more else (1 - beta) / 2)


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(InputError, match="no rejector to compare"):
        compare_rejectors({}, np.ones((1, 2, 2)), np.ones((2, 2), dtype=int))


@pytest.mark.parametrize(
    ("rejectors", "message"),
    [
        ([PixelwiseRejector()], r"map names to rejectors, .* \(got list\)"),
        ({"a": "pixelwise"}, r"'a' must be an object .* \(got 'pixelwise'\)"),
        ({"a": PixelwiseRejector}, r"class PixelwiseRejector\)\. Write PixelwiseRejector\(\)\."),
    ],
)
def test_what_is_no_rejector_is_refused(rejectors, message) -> None:
    with pytest.raises(InputError, match=message):
        compare_rejectors(rejectors, np.ones((1, 2, 2)), np.ones((2, 2), dtype=int))


def test_curve_summaries_take_one_rejector_at_a_time(points) -> None:
    scene = make_scene(shape=(30, 33))
    expected = PixelwiseRejector().operating_points(scene.probability, scene.test)
    for summary in (aurc, excess_aurc, lambda table: accuracy_at(table, 0.1)):
        with pytest.raises(InputError, match=r"of 3 \(pixelwise, sequential, joint\)") as refused:
            summary(points)
        advice = str(refused.value).split("Choose one: ")[1].rstrip(".")
        chosen = eval(advice, {"table": points})  # what the message tells to write
        assert summary(chosen) == summary(expected)
    with pytest.raises(InputError, match="one rejector"):
        relative_optimality_pairs(points, n_points=5)
