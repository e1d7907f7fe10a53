"""Rejection curves: time against a bare sort and against other packages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
from reject.reject import compute_metrics
from skfb.metrics import fallback_quality_curve

import hsreject as hr
from benchmarks.timing import Row, best_in_turns, best_seconds

MINUTES = 1


def samples(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n accuracies and n distinct confidences."""
    random = np.random.default_rng(0)
    confidence = random.random(n)
    return random.random(n) < confidence, confidence


def sort_rows() -> Iterator[Row]:
    """Compare with a bare argsort for growing numbers of samples."""
    for n, repeat in ((100_000, 30), (1_000_000, 9), (5_000_000, 3)):
        correct, confidence = samples(n)
        both = {
            "sort": partial(np.argsort, confidence),
            "curve": partial(hr.rejection_curve, correct, confidence),
        }
        # neither uses threads, and the time of the processor does not depend on what else runs
        cpu = best_in_turns(both, rounds=repeat, clock=time.process_time)
        yield Row(
            f"exact curve of {n:,} samples / bare numpy.argsort (NumPy {np.__version__})",
            f"{cpu['curve'] / cpu['sort']:.2f} "
            f"({1e3 * cpu['curve']:.0f} ms / {1e3 * cpu['sort']:.0f} ms)",
            "at most 2.5, the same for every size",
        )


def small_row() -> Row:
    """Time a small curve, where Python and xarray cost more than the sort."""
    correct, confidence = samples(10_000)
    seconds = best_seconds(lambda: hr.rejection_curve(correct, confidence), repeat=100)
    return Row("exact curve of 10,000 samples", f"{1e3 * seconds:.2f} ms")


def reject_row() -> Row:
    """Compare with 100 points by the package reject, of which three are timed."""
    correct, confidence = samples(1_000_000)
    as_float = correct.astype(float)
    points = (0.1, 0.5, 0.9)

    def some_points() -> None:
        for fraction in points:
            compute_metrics(fraction, as_float, -confidence, show=False)

    theirs = best_seconds(some_points, repeat=1) * 100 / len(points)
    ours = best_seconds(lambda: hr.rejection_curve(correct, confidence))
    return Row(
        "100-point curve of reject (3 points timed) / our exact curve, 1,000,000 samples",
        f"{theirs / ours:,.0f} ({theirs:.0f} s / {1e3 * ours:.0f} ms)",
        "at least 100",
    )


def scikit_fallback_rows() -> Iterator[Row]:
    """Compare with the curve of scikit-fallback, which looks at all samples for each point."""
    for n in (500, 1000, 2000):
        correct, confidence = samples(n)
        score = np.stack([confidence, 1 - confidence], axis=1)
        label = np.where(correct, score.argmax(axis=1), score.argmin(axis=1))
        theirs = best_seconds(
            lambda y=label, s=score: fallback_quality_curve(y, s, raise_warning=False), repeat=1
        )
        ours = best_seconds(lambda a=correct, c=confidence: hr.rejection_curve(a, c))
        yield Row(
            f"curve of scikit-fallback / our exact curve, {n:,} samples",
            f"{theirs / ours:,.0f} ({1e3 * theirs:.0f} ms / {1e3 * ours:.1f} ms)",
        )


def rows() -> Iterator[Row]:
    """Yield the table."""
    yield from sort_rows()
    yield small_row()
    yield reject_row()
    yield from scikit_fallback_rows()
    correct, confidence = samples(10_000)
    both = correct, confidence, correct, 1 - confidence
    seconds = best_seconds(lambda: hr.bootstrap_difference(*both), repeat=2)
    yield Row(
        "bootstrap of a difference, 1,000 resamples of 10,000 pixels", f"{seconds:.2f} s", "seconds"
    )
