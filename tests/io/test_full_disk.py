"""A disk without room: one sentence, before the work where it can be known, and nothing left."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import FileError

resource = pytest.importorskip("resource", reason="limits on file sizes are POSIX")

MAP = xr.DataArray(np.random.default_rng(0).random((600, 700)), dims=("y", "x"), name="confidence")


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let the system refuse longer files, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    sys.dont_write_bytecode = True  # of which Python 3.11 would leave a half
    try:
        yield
    finally:
        sys.dont_write_bytecode = False
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", ["map.tif", "map.img"])
def test_writes_that_fail_half_way(tmp_path: Path, name, lazy) -> None:
    array = MAP.copy(data=da.from_array(MAP.values, chunks=300)) if lazy else MAP
    # One thread, so that none goes on working on the next test after the failure.
    with (
        dask.config.set(scheduler="synchronous"),
        files_of_at_most(500_000),
        pytest.raises(FileError, match=r"Could not write .*: GDAL gave up"),
    ):
        hr.write_map(array, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lazy", [False, True])
def test_no_limit_leaves_a_map_with_holes(tmp_path: Path, lazy) -> None:
    """The last tiles of a map of 600 x 700 are only partly used."""
    array = MAP.copy(data=da.from_array(MAP.values, chunks=(130, 700))) if lazy else MAP
    for megabytes in np.arange(1.0, 9.0, 0.5):
        path = tmp_path / f"{megabytes}.tif"
        with (
            dask.config.set(scheduler="synchronous"),
            files_of_at_most(int(megabytes * 1e6)),
            suppress(FileError),
        ):
            hr.write_map(array, path)
        if path.exists():
            np.testing.assert_array_equal(hr.open_map(path).values, MAP.values)
    assert path.exists()  # the last one had room


def test_a_file_that_is_cut_when_it_is_closed(tmp_path: Path) -> None:
    """GDAL writes the last tiles of a Cloud-Optimised GeoTIFF when it closes the file."""
    array = xr.DataArray(np.random.default_rng(0).random((1024, 1024)), dims=("y", "x"))
    hr.write_map(array, tmp_path / "whole.tif")
    length = (tmp_path / "whole.tif").stat().st_size
    for missing in (1, 2_000, 20_000, 200_000):
        with files_of_at_most(length - missing), pytest.raises(FileError, match="Could not write"):
            hr.write_map(array, tmp_path / "cut.tif")
    assert {path.name for path in tmp_path.iterdir()} == {"whole.tif", "whole.qml"}


def test_too_little_room_is_known_before_the_work(tmp_path: Path, monkeypatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=10**6))

    def computed(_block: np.ndarray) -> np.ndarray:
        raise AssertionError

    array = MAP.copy(data=da.from_array(MAP.values, chunks=300).map_blocks(computed, dtype=float))
    with pytest.raises(FileError, match=r"may need 8.4 MB, and only 1.0 MB are free"):
        hr.write_map(array, tmp_path / "map.tif")
    assert list(tmp_path.iterdir()) == []
