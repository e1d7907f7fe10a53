"""Streamed curves: exact points, steps no larger than stated, complete when small."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import InputError

COUNTS = ("accurate_kept", "misclassified_kept", "accurate_rejected", "misclassified_rejected")
RNG = np.random.default_rng(12)
N = 20_000
UNIFORM = RNG.random(N)
SHAPES = {
    "uniform": UNIFORM,
    "saturated": 1 - 1e-9 * RNG.random(N) ** 8,
    "mostly one value": np.where(RNG.random(N) < 0.8, 1.0, UNIFORM),
    "few values": np.round(UNIFORM, 2),
    "negative, as entropies are": -UNIFORM,
    "sorted, so that blocks differ": np.sort(UNIFORM),
    "of all sizes": np.exp(50 * RNG.standard_normal(N)),
}
CORRECT = RNG.random(N) < 0.4 + UNIFORM / 2


def lazy(array: np.ndarray, chunks: object) -> da.Array:
    return da.from_array(array, chunks=chunks)


@pytest.mark.parametrize("chunks", [7, 50, (20, 0, 30)])
@pytest.mark.parametrize("weighted", [False, True])
def test_small_arrays_give_the_complete_curve(chunks: object, weighted: bool) -> None:  # noqa: FBT001
    confidence = np.round(UNIFORM[:50], 1)
    weights = RNG.integers(0, 3, 50) if weighted else None
    chunks = (chunks,) if isinstance(chunks, tuple) else chunks
    found = hr.rejection_curve(
        lazy(CORRECT[:50], chunks), lazy(confidence, chunks), weights=weights
    )
    assert found.attrs.pop("largest_step") == 0
    xr.testing.assert_identical(
        found, hr.rejection_curve(CORRECT[:50], confidence, weights=weights)
    )


@pytest.mark.parametrize("chunks", [1000, ((N - 99, *[1] * 99),)], ids=["even", "one huge block"])
@pytest.mark.parametrize("name", SHAPES)
def test_points_are_exact_and_steps_bounded(name: str, chunks: object) -> None:
    confidence, resolution = SHAPES[name], 2e-3
    exact = hr.rejection_curve(CORRECT, confidence)
    found = hr.streamed_rejection_curve(
        lazy(CORRECT, chunks), lazy(confidence, chunks), resolution=resolution
    )
    reached = {tuple(row) for row in np.stack([exact[n].values for n in COUNTS], axis=1)}
    rows = np.stack([found[n].values for n in COUNTS], axis=1)
    assert all(tuple(row) in reached for row in rows)
    for index in np.linspace(0, len(rows) - 1, 20).astype(int):  # thresholds reach their points
        point = hr.operating_point(CORRECT, confidence < found.threshold.values[index])
        assert point == hr.OperatingPoint.from_curve(found, index)
    place = np.searchsorted(exact.rejected_fraction, found.rejected_fraction)
    step = np.diff(found.rejected_fraction)
    divisible = np.diff(place) > 1  # an exact point lies between
    assert step[divisible].max(initial=0) <= found.attrs["largest_step"] + 1e-12
    assert found.attrs["largest_step"] <= resolution


def test_stated_bound_of_the_error_at_any_threshold() -> None:
    resolution = 5e-3
    found = hr.streamed_rejection_curve(
        lazy(CORRECT, 900), lazy(UNIFORM, 900), resolution=resolution
    )
    below = np.searchsorted(found.threshold, np.linspace(0.01, 0.99, 40), side="right") - 1
    for threshold, index in zip(np.linspace(0.01, 0.99, 40), below, strict=True):
        exact = hr.operating_point(CORRECT, threshold > UNIFORM)
        near = hr.OperatingPoint.from_curve(found, index)
        for name in (*COUNTS,):
            assert abs(getattr(exact, name) - getattr(near, name)) / N <= resolution
        assert abs(exact.classification_quality - near.classification_quality) <= resolution


def test_float_weights_agree_with_the_loaded_curve() -> None:
    weights = RNG.random(N)
    exact = hr.rejection_curve(CORRECT, SHAPES["few values"], weights=weights)
    found = hr.rejection_curve(
        lazy(CORRECT, 999), lazy(SHAPES["few values"], 999), weights=lazy(weights, 500)
    )
    for name in exact:  # weights are added in another order
        np.testing.assert_allclose(found[name], exact[name], rtol=1e-10, atol=1e-9)


def test_result_does_not_depend_on_threads() -> None:
    arrays = lazy(CORRECT, 1000), lazy(UNIFORM, 1000)
    with dask.config.set(scheduler="synchronous"):
        first = hr.streamed_rejection_curve(*arrays, resolution=1e-2)
    with dask.config.set(scheduler="threads", num_workers=4):
        second = hr.streamed_rejection_curve(*arrays, resolution=1e-2)
    xr.testing.assert_identical(first, second)


def test_maps_with_other_chunks_and_masked_arrays() -> None:
    shape = (100, 200)
    maps = [
        xr.DataArray(lazy(array.reshape(shape), chunks), dims=("y", "x"))
        for array, chunks in ((CORRECT, (30, 70)), (SHAPES["few values"], (100, 50)))
    ]
    exact = hr.rejection_curve(CORRECT, SHAPES["few values"])
    found = hr.rejection_curve(maps[0], maps[1])
    np.testing.assert_array_equal(found.accurate_kept, exact.accurate_kept)
    mask = lazy(UNIFORM > 0.5, 1000)  # sizes of the blocks are unknown after this
    chosen = hr.rejection_curve(lazy(CORRECT, 1000)[mask], lazy(SHAPES["few values"], 1000)[mask])
    some = hr.rejection_curve(CORRECT[UNIFORM > 0.5], SHAPES["few values"][UNIFORM > 0.5])
    np.testing.assert_array_equal(chosen.accurate_kept, some.accurate_kept)


def test_progress_moves_within_each_pass() -> None:
    seen: list[tuple[str, float, float | None]] = []
    hr.streamed_rejection_curve(
        lazy(CORRECT, 200), lazy(UNIFORM, 200), progress=lambda *report: seen.append(report)
    )
    assert {stage for stage, _, _ in seen} == {"curve: edges", "curve: counts"}
    assert [done for stage, done, _ in seen if stage == "curve: edges"] == [32, 64, 96, 100]


def test_bad_lazy_input_has_one_clear_error() -> None:
    bad = UNIFORM.copy()
    bad[17] = np.nan
    with pytest.raises(InputError, match="must be finite"):
        hr.rejection_curve(lazy(CORRECT, 1000), lazy(bad, 1000))
    with pytest.raises(InputError, match="correct must be boolean"):
        hr.rejection_curve(lazy(UNIFORM, 1000), lazy(UNIFORM, 1000))
    with pytest.raises(InputError, match="resolution must lie"):
        hr.streamed_rejection_curve(lazy(CORRECT, 1000), lazy(UNIFORM, 1000), resolution=0)
    nothing = lazy(np.zeros(N, dtype=bool), 1000)
    with pytest.raises(InputError, match="every block is empty"):
        hr.rejection_curve(lazy(CORRECT, 1000)[nothing], lazy(UNIFORM, 1000)[nothing])
    other = lazy(UNIFORM > 0.5, 1000)
    with pytest.raises(InputError, match="Select the samples of both with one mask"):
        hr.rejection_curve(lazy(CORRECT, 1000)[other], lazy(UNIFORM, 1000)[nothing])
    with pytest.raises(InputError, match="blocks of unknown size"):
        hr.rejection_curve(lazy(CORRECT, 1000)[other], lazy(UNIFORM, 500)[lazy(CORRECT, 500)])
    with pytest.raises(InputError, match="weight 0"):
        hr.rejection_curve(lazy(CORRECT, 1000), lazy(UNIFORM, 1000), weights=np.zeros(N))
