"""The library called from many places at once: threads, forked and spawned processes, joblib."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import joblib
import numpy as np
import pytest

import hsreject as hr

SEEDS = (0, 1, 2, 3)


def reject_map(seed: int) -> bytes:
    """Return a map with its confidences: features, regression, context, ranking, threads inside."""
    cube, labels = hr.synthetic_scene(rows=24, columns=24, n_classes=3, n_bands=8, seed=seed)
    train, _ = hr.sample_per_class(labels, 5, seed=seed)
    model = hr.SceneClassifier("smlr", features=[hr.MNF(3)]).fit(cube, train)
    evidence = model.predict_proba(cube).to_dataset(name="probability")
    context = hr.SegSALSA(hr.VectorTV(2.0), n_threads=2)
    field = context.solve(evidence["probability"]).hidden_field
    maps = hr.SequentialRejector(context).reject(evidence.assign(hidden_field=field), fraction=0.2)
    return np.stack([maps["label_with_rejection"], maps["confidence"]]).tobytes()


def in_processes(method: str) -> list[bytes]:
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        return list(pool.map(reject_map, SEEDS, timeout=120))


def in_threads() -> list[bytes]:
    with ThreadPoolExecutor(len(SEEDS)) as pool:
        return list(pool.map(reject_map, SEEDS))


WAYS: dict[str, Callable[[], list[bytes]]] = {
    "threads": in_threads,
    "fork": lambda: in_processes("fork"),
    "spawn": lambda: in_processes("spawn"),
    "joblib": lambda: joblib.Parallel(2)(joblib.delayed(reject_map)(seed) for seed in SEEDS),
}


@pytest.mark.posix
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # of Python 3.12, after threads
@pytest.mark.parametrize("way", WAYS)
def test_calls_at_once_give_what_calls_in_turn_give(way: str) -> None:
    assert WAYS[way]() == [reject_map(seed) for seed in SEEDS]
