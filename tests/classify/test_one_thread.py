"""Features, training and prediction give the same bits on one and on two BLAS threads."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from hsreject.classify.one_thread import one_blas_thread

# of NumPy and SciPy, and of oracles of other tests, some of which cannot have two threads
LIBRARIES = ThreadpoolController().select(user_api="blas")

# 500 samples and functions: products large enough that BLAS divides them if it may
CODE = """
import hashlib
import numpy as np
import xarray as xr
import hsreject as hr

rng = np.random.default_rng(0)
labels = xr.DataArray(np.arange(70 * 80).reshape(70, 80) % 7 + 1, dims=("y", "x")).astype("uint8")
values = rng.standard_normal((7, 60))[labels.values - 1] + rng.standard_normal((70, 80, 60))
cube = xr.DataArray(values.transpose(2, 0, 1), dims=("band", "y", "x"))
train = labels.where(xr.DataArray(rng.random((70, 80)) < 0.09, dims=("y", "x")), 0).astype("uint8")
used = train.values > 0
digest = hashlib.sha256()
for classifier in (
    hr.SparseMultinomialRegression(tol=1e-3),
    hr.SparseMultinomialRegression(kernel="linear", tol=1e-3, precision="single"),
    "lda",
    "logistic_regression",
):
    model = hr.SceneClassifier(classifier, features=[hr.MNF(15)]).fit(cube, train)
    digest.update(model.transform(cube).values.tobytes())
    digest.update(model.predict_proba(cube).values.tobytes())
model = hr.SparseMultinomialRegression(tol=1e-3).fit(values[used], train.values[used])
digest.update(model.predict_proba(values.reshape(-1, 60)).tobytes())
print(digest.hexdigest())
"""


def n_blas_threads() -> list[int]:
    return [library["num_threads"] for library in LIBRARIES.info()]


def test_same_bits_on_one_and_on_two_threads() -> None:
    found = []
    for n_threads in ("1", "2"):
        names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
        environment = os.environ | dict.fromkeys(names, n_threads)
        done = subprocess.run(
            [sys.executable, "-c", CODE],
            env=environment, check=True, capture_output=True, text=True,
        )  # fmt: skip
        found.append(done.stdout)
    assert found[0] == found[1]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_limit_is_lifted_when_the_last_thread_leaves(n_threads: int) -> None:
    both_inside, one_left = Barrier(2), Barrier(2)

    def leave_first() -> None:
        with one_blas_thread():
            both_inside.wait(timeout=60)
        one_left.wait(timeout=60)

    def leave_last() -> list[int]:
        with one_blas_thread():
            both_inside.wait(timeout=60)
            one_left.wait(timeout=60)
            return n_blas_threads()

    with threadpool_limits(n_threads, user_api="blas"), ThreadPoolExecutor(2) as pool:
        before = n_blas_threads()
        assert n_threads in before
        first, last = pool.submit(leave_first), pool.submit(leave_last)
        first.result()
        assert set(last.result()) == {1}
        assert n_blas_threads() == before
