import numpy as np
import pytest
import xarray as xr
from hsreject.fingerprint import fingerprint
from hsreject.pipeline.store import StageStore


@pytest.fixture
def result() -> xr.Dataset:
    values = np.array([[1.5, np.nan]], dtype=np.float32)
    return xr.Dataset({"confidence": (("y", "x"), values)}, attrs={"seconds": 2.0})


class Work:
    """Counts how often it is done."""

    def __init__(self, result: xr.Dataset) -> None:
        self.result, self.times = result, 0

    def __call__(self) -> xr.Dataset:
        self.times += 1
        return self.result


def test_a_finished_stage_is_not_done_again(tmp_path, result) -> None:
    work = Work(result)
    store = StageStore(tmp_path / "stages")
    first = store.recall("context", "a" * 40, work)
    again = StageStore(tmp_path / "stages").recall("context", "a" * 40, work)
    assert work.times == 1
    xr.testing.assert_identical(first["confidence"], again["confidence"])
    assert again.attrs["seconds"] == 2.0


def test_another_key_is_another_stage(tmp_path, result) -> None:
    work = Work(result)
    store = StageStore(tmp_path)
    store.recall("context", "a" * 40, work)
    store.recall("context", "b" * 40, work)
    store.recall("probability", "a" * 40, work)
    assert work.times == 3


def test_a_failed_stage_leaves_nothing(tmp_path) -> None:
    def fail() -> xr.Dataset:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        StageStore(tmp_path).recall("context", "a" * 40, fail)
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_nothing_is_kept(result) -> None:
    work = Work(result)
    for _ in range(2):
        StageStore(None).recall("context", "a", work)
    assert work.times == 2


def test_a_damaged_file_is_computed_again(tmp_path, result) -> None:
    work = Work(result)
    store = StageStore(tmp_path)
    store.recall("context", "a" * 40, work)
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    xr.testing.assert_equal(store.recall("context", "a" * 40, work), result)
    assert work.times == 2


def test_fingerprints_see_values_coordinates_and_attributes(result) -> None:
    array = result["confidence"]
    same = fingerprint(array) == fingerprint(array.copy(deep=True))
    assert same
    others = [
        array + 1,
        array.assign_coords(x=[1, 2]),
        array.assign_attrs(units="m"),
        array.astype(float),
    ]
    assert len({fingerprint(other) for other in [array, *others]}) == 5


def test_texts_count_by_what_they_say() -> None:
    names = np.array(["oak", "pine"])
    assert fingerprint(names) == fingerprint(names.astype(object))
    assert fingerprint(names) != fingerprint(np.array(["oak", "elm"]))
