"""How a scene is cut: blocks follow from the memory, and never from the number of workers."""

from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from hsreject.errors import InputError
from hsreject.mapping.blocks import (
    BYTES_PER_BAND,
    BYTES_PER_PIXEL,
    LARGEST_PIECE,
    PIECE,
    PROGRAM,
    Blocks,
    Resources,
    cut_scene,
)

SCENE = (9000, 7000)
RECORD = np.dtype([("label", "u1"), ("second", "u1"), ("confidence", "f4", (1,))])
REPEATABLE = settings(deadline=None, derandomize=True, max_examples=40)


def cut(
    halo: int | None, *, shape=SCENE, n_bands=200, n_classes=16, grain=None, **options
) -> Blocks:
    """Cut a scene that is not there for a model of which only the numbers are known."""
    cube = xr.DataArray(da.empty((n_bands, *shape), dtype="f4"), dims=("band", "y", "x"))
    cube.encoding["preferred_chunks"] = dict(zip(("y", "x"), grain or (1, shape[1]), strict=True))
    rejector = SimpleNamespace(halo=halo, bytes_per_class=40, needs_p_value=False)
    model = SimpleNamespace(
        halo=halo,
        rejector=rejector,
        classifier=SimpleNamespace(halo=0),
        classes=range(n_classes),
    )
    return cut_scene(cube, model, RECORD, Resources(**options))


@REPEATABLE
@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 150), st.integers(0, 100))
def test_blocks_cover_the_scene_and_hold_a_halo(rows: int, columns: int, side: int, halo: int):
    blocks = Blocks((rows, columns), side, halo, n_workers=1, piece=(1, columns))
    for parts, depth, size in zip(blocks.sizes, blocks.depth, blocks.shape, strict=True):
        assert sum(parts) == size
        assert max(parts) <= max(side, 2 * halo)
        assert max(parts) - min(parts) <= 1  # no slivers
        assert min(parts) >= depth
        assert depth == (halo if len(parts) > 1 else 0)
    assert len(blocks) == len(blocks.sizes[0]) * len(blocks.sizes[1])


@REPEATABLE
@given(grain=st.tuples(st.integers(1, 600), st.integers(1, 8000)), n_bands=st.integers(1, 400))
def test_pieces_follow_the_grain_of_the_file(grain: tuple[int, int], n_bands: int) -> None:
    blocks = cut(16, n_bands=n_bands, grain=grain, memory="16GB")
    assert [sum(parts) for parts in blocks.pieces] == list(SCENE)
    rows, columns = blocks.piece
    stored = [min(part, size) for part, size in zip(grain, SCENE, strict=True)]
    assert columns % stored[1] == 0 or columns == SCENE[1]
    if rows % stored[0]:  # what is stored together is too much to be read at once
        assert stored[0] * columns * n_bands * BYTES_PER_BAND > LARGEST_PIECE
    else:
        assert rows * columns <= max(PIECE, stored[0] * columns)
    assert rows == 1 or rows * columns * n_bands * BYTES_PER_BAND <= LARGEST_PIECE


@REPEATABLE
@given(
    n_bands=st.integers(1, 400),
    n_classes=st.integers(2, 60),
    halo=st.integers(0, 128),
    memory=st.integers(800_000_000, 16_000_000_000),
    n_workers=st.integers(1, 64),
)
def test_workers_and_their_blocks_stay_within_memory(
    n_bands: int, n_classes: int, halo: int, memory: int, n_workers: int
) -> None:
    load = {"n_bands": n_bands, "n_classes": n_classes}
    try:
        blocks = cut(halo, **load, memory=memory, n_workers=n_workers)
    except InputError as error:
        least = int(str(error).split("at least ")[1].split(" MB")[0]) * 1_000_000
        assert least > memory
        assert cut(halo, **load, memory=least)  # what it asks for is enough
        return
    rows, columns = (max(sizes) + 2 * halo for sizes in blocks.sizes)
    solving = rows * columns * (40 * n_classes + BYTES_PER_PIXEL + RECORD.itemsize)
    waiting = SCENE[1] * rows * 4 * n_classes
    reading = blocks.piece[0] * blocks.piece[1] * n_bands * BYTES_PER_BAND
    assert PROGRAM + waiting + blocks.n_workers * (solving + reading) <= memory
    assert 1 <= blocks.n_workers <= n_workers
    assert blocks.sizes == cut(halo, **load, memory=memory, n_workers=1).sizes


@pytest.mark.parametrize(("halo", "side"), [(0, 512), (16, 512), (32, 512), (64, 1024)])
def test_with_memory_to_spare_halos_cost_no_more_than_a_quarter(halo: int, side: int) -> None:
    assert cut(halo, memory="64GB").side == side
    assert (1 + 2 * halo / side) ** 2 < 1.27
    assert cut(halo, memory="800MB").side <= side


def test_a_chosen_side_is_taken_raised_to_the_halo_or_refused() -> None:
    assert cut(32, memory="2GB", block_size=700).side == 700
    assert cut(32, memory="2GB", block_size=7).side == 32
    with pytest.raises(InputError, match="smaller block"):
        cut(32, memory="2GB", block_size=3000)


def test_a_model_without_halo_maps_in_one_block_or_says_what_it_needs() -> None:
    assert len(cut(None, shape=(300, 200), memory="2GB")) == 1
    # 1,600 bytes of the image and 710 of the classes for each of 63 million pixels
    with pytest.raises(InputError, match=r"in blocks: at least 14[0-9]{4} MB"):
        cut(None, memory="2GB")


@pytest.mark.parametrize("memory", ["much", "0", "-1GB"])
def test_impossible_memory_is_named(memory: str) -> None:
    with pytest.raises(InputError, match=memory):
        cut(16, memory=memory)
