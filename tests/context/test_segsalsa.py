"""SegSALSA as a user calls it."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.confidence import TieBrokenMaximum
from hsreject.context.admm import ADMM
from hsreject.context.preconditioned_admm import PreconditionedADMM
from hsreject.context.segsalsa import SegSALSAResult
from hsreject.errors import NotConvergedWarning
from hsreject.schema import attach_classes, class_table, nodata_label
from tests.context.scenes import example_image, random_probability, regions

SCENE = regions((3, 18, 45), seed=1)


def after_40_iterations(
    probability: np.ndarray, *, solver: str = "preconditioned_admm"
) -> SegSALSAResult:
    """Return a result that depends on nothing but the problem: not on where a tolerance is met."""
    segsalsa = hr.SegSALSA(hr.VectorTV(2.0), solver=solver, tol=1e-15, max_iter=40, dtype="float64")
    with pytest.warns(NotConvergedWarning):
        return segsalsa.solve(probability)


def labelled(probability: np.ndarray) -> xr.DataArray:
    n_classes, n_rows, n_columns = probability.shape
    array = xr.DataArray(
        probability,
        dims=("category", "y", "x"),
        coords={
            "category": [2, 5, 9][:n_classes],
            "y": 4_000_000.0 - 30 * np.arange(n_rows),
            "x": 500_000.0 + 30 * np.arange(n_columns),
            "spatial_ref": 0,
        },
    )
    array.coords["spatial_ref"].attrs["crs_wkt"] = "some wkt"
    return attach_classes(
        array, hr.ClassTable.from_names(["corn", "oats", "wheat"], values=[2, 5, 9])
    )


def test_hidden_field_is_on_the_simplex() -> None:
    field = hr.SegSALSA(hr.VectorTV(2.0)).solve(SCENE).hidden_field
    assert field.dtype == np.float32
    assert field.shape == SCENE.shape
    assert (field >= 0).all()
    np.testing.assert_allclose(field.sum(axis=0), 1, atol=3e-7)  # float32 rounding of a sum


def test_labelled_arrays_keep_what_they_carry() -> None:
    probability = labelled(SCENE)
    result = hr.SegSALSA(hr.VectorTV(2.0)).solve(probability)
    plain = hr.SegSALSA(hr.VectorTV(2.0)).solve(SCENE)
    np.testing.assert_array_equal(result.hidden_field.values, plain.hidden_field)
    np.testing.assert_array_equal(result.label.values, np.array([0, 2, 5, 9])[plain.label])
    for array in (result.hidden_field, result.label):
        xr.testing.assert_equal(array.coords["x"], probability.coords["x"])
        assert array.coords["spatial_ref"].attrs["crs_wkt"] == "some wkt"
    assert class_table(result.label).names == ("corn", "oats", "wheat")
    assert result.hidden_field.dims == ("category", "y", "x")


def test_dimension_order_and_laziness_do_not_matter() -> None:
    probability = labelled(SCENE)
    expected = hr.SegSALSA(hr.VectorTV(1.0)).solve(probability).label
    for given in (probability.transpose("y", "x", "category"), probability.chunk({"y": 7})):
        xr.testing.assert_equal(hr.SegSALSA(hr.VectorTV(1.0)).solve(given).label, expected)


def test_turning_the_scene_turns_the_optimum() -> None:
    # forward differences are not exactly symmetric, a transposition is
    first = after_40_iterations(SCENE)
    second = after_40_iterations(SCENE.transpose(0, 2, 1))
    assert second.objective == pytest.approx(first.objective, rel=1e-12)


@pytest.mark.parametrize(
    ("prior", "dtype"),
    [
        (hr.VectorTV(1.5), "float32"),
        (hr.VectorTV(1.5), "float64"),
        ([hr.VectorTV(1.0), hr.VectorTV(0.5)], "float32"),
        (hr.StructureTensor(0.5, patch=5), "float32"),
        (hr.GraphTV(1.0, partitions=np.arange(18 * 45).reshape(18, 45) // 7), "float32"),
    ],
)
def test_the_answer_is_the_same_for_any_number_of_threads(prior: object, dtype: str) -> None:
    results = [
        hr.SegSALSA(prior, n_threads=n, dtype=dtype, tol=1e-4).solve(SCENE) for n in (1, 2, 3, 7)
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result.hidden_field, results[0].hidden_field)
        assert (result.gap, result.objective) == (results[0].gap, results[0].objective)


def test_both_solvers_agree_to_tolerance() -> None:
    results = [
        hr.SegSALSA(hr.VectorTV(2.0), solver=solver, tol=1e-5, dtype="float64").solve(SCENE)
        for solver in (
            "admm",
            "preconditioned_admm",
            ADMM(penalty=1.0),
            PreconditionedADMM(step=0.2),
        )
    ]
    for result in results:
        assert result.objective == pytest.approx(results[0].objective, rel=1e-5)


def test_float32_finds_the_same_optimum() -> None:
    exact, single = (
        hr.SegSALSA(hr.VectorTV(2.0), tol=1e-5, dtype=dtype).solve(SCENE)
        for dtype in ("float64", "float32")
    )
    assert single.converged
    assert single.objective == pytest.approx(exact.objective, rel=1e-5)


def test_class_priors_turn_probabilities_into_likelihoods() -> None:
    prior = np.array([0.6, 0.3, 0.1])
    likelihood = SCENE / prior[:, None, None]
    likelihood /= likelihood.sum(axis=0)
    ours = hr.SegSALSA(hr.VectorTV(1.0), class_prior=prior, dtype="float64").solve(SCENE)
    expected = hr.SegSALSA(hr.VectorTV(1.0), dtype="float64").solve(likelihood)
    assert ours.objective == pytest.approx(expected.objective)
    np.testing.assert_allclose(ours.hidden_field, expected.hidden_field, atol=1e-10)


def test_edges_from_the_image_hold_borders() -> None:
    image = example_image((5, 18, 44), seed=3)
    probability = regions((2, 18, 44), seed=4, noise=4.0)
    plain = hr.SegSALSA(hr.VectorTV(3.0)).solve(probability, image=image)
    edges = hr.SegSALSA(hr.VectorTV(3.0, edges="image")).solve(probability, image=image)
    truth = np.arange(44) // 22 + 1
    assert (edges.label == truth).mean() > (plain.label == truth).mean()


def test_probabilities_decide_where_the_hidden_field_saturates_and_never_against_it() -> None:
    result = hr.SegSALSA(hr.VectorTV(0.1)).solve(SCENE)
    confidence = TieBrokenMaximum()(result.hidden_field, probability=result.probability)
    largest = result.hidden_field.max(axis=0)
    saturated = largest == 1
    assert saturated.sum() > 100
    assert len(np.unique(confidence[saturated])) > 100
    assert confidence[saturated].min() > confidence[largest < 0.99].max()


def test_progress_is_told_at_every_iteration() -> None:
    calls: list[tuple[str, float, float | None]] = []
    result = hr.SegSALSA(hr.VectorTV(2.0)).solve(SCENE, progress=lambda *call: calls.append(call))
    context = [call for call in calls if call[0] == "context"]
    assert [done for _, done, _ in context] == list(range(1, result.n_iterations + 1))
    assert all(total is not None and total >= done for _, done, total in context)


def test_out_of_iterations_warns_with_the_gap() -> None:
    with pytest.warns(NotConvergedWarning, match="3 iterations .* max_iter"):
        result = hr.SegSALSA(hr.VectorTV(2.0), max_iter=3).solve(SCENE)
    assert not result.converged
    assert result.n_iterations == 3
    assert result.history[-1].gap == result.gap


@pytest.mark.parametrize("solver", ["admm", "preconditioned_admm"])
def test_thin_scenes_one_class_and_many(solver: str) -> None:
    for shape in ((1, 6, 7), (3, 1, 9), (3, 9, 1), (2, 1, 1), (1, 1, 1), (100, 6, 40)):
        segsalsa = hr.SegSALSA(hr.VectorTV(1.0), solver=solver)
        result = segsalsa.solve(random_probability(shape, seed=5))
        assert result.converged
        np.testing.assert_allclose(result.hidden_field.sum(axis=0), 1, atol=3e-7)
        if shape[0] == 1:
            assert (result.label == 1).all()
            assert result.objective == pytest.approx(0, abs=1e-5)


def test_certain_impossible_and_equal_classes() -> None:
    probability = np.zeros((3, 8, 8))
    probability[0] = 1.0
    probability[:, 3, 3] = [0, 1, 0]
    result = hr.SegSALSA(hr.VectorTV(0.1)).solve(probability)
    assert result.converged
    assert result.label[3, 3] == 2
    # ties go to the first class
    assert (hr.SegSALSA(hr.VectorTV(1.0)).solve(np.full((4, 3, 3), 0.25)).label == 1).all()


class TestNodata:
    def test_equals_the_cropped_scene(self) -> None:
        padded = np.full((3, 24, 60), np.nan)
        padded[:, 4:22, 9:54] = SCENE
        cropped = after_40_iterations(SCENE)
        whole = after_40_iterations(padded)
        assert whole.objective == pytest.approx(cropped.objective, rel=1e-12)
        assert whole.gap == pytest.approx(cropped.gap, rel=1e-9)
        inside = whole.hidden_field[:, 4:22, 9:54]
        np.testing.assert_allclose(inside, cropped.hidden_field, atol=1e-9)
        np.testing.assert_array_equal(np.isnan(whole.hidden_field), np.isnan(padded))
        assert (whole.label[0] == nodata_label("uint8")).all()

    @pytest.mark.parametrize("solver", ["admm", "preconditioned_admm"])
    def test_separated_regions_do_not_influence_each_other(self, solver: str) -> None:
        # at a fixed number of iterations, so that only a coupling could make a difference
        fields = []
        for seed in (7, 8):
            probability = SCENE.copy()
            probability[:, :, 20] = np.nan
            probability[:, :, 21:] = random_probability((3, 18, 24), seed=seed)
            fields.append(after_40_iterations(probability, solver=solver).hidden_field)
        # conjugate gradients of the reference solver stop on the norm of the whole scene
        atol = 0 if solver == "preconditioned_admm" else 1e-6
        np.testing.assert_allclose(fields[0][:, :, :20], fields[1][:, :, :20], rtol=0, atol=atol)
        assert np.abs(fields[0][:, :, 21:] - fields[1][:, :, 21:]).max() > 0.1

    def test_image_where_there_is_no_data_does_not_matter(self) -> None:
        probability = SCENE.copy()
        probability[:, 5:8, 5:8] = np.nan
        image = example_image((4, 18, 45), seed=9)
        spoilt = image.copy()
        spoilt[:, 5:8, 5:8] = np.nan
        solver = hr.SegSALSA(hr.VectorTV(2.0, edges="image"))
        np.testing.assert_array_equal(
            solver.solve(probability, image=image).hidden_field,
            solver.solve(probability, image=spoilt).hidden_field,
        )
