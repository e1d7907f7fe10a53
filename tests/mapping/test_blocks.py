"""How a scene is cut: blocks follow from the memory, and never from the number of workers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hsreject.errors import InputError
from hsreject.mapping.blocks import BYTES_PER_BAND, LARGEST_PIECE, PIECE, PROGRAM, Blocks, cut_scene

SCENE = (9000, 7000)
LOAD = {"n_bands": 200, "bytes_per_pixel": 704, "bytes_waiting": 64}
REPEATABLE = settings(deadline=None, derandomize=True, max_examples=40)


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
    blocks = cut_scene(
        SCENE, n_bands=n_bands, bytes_per_pixel=704, bytes_waiting=64, halo=16, memory="16GB",
        grain=grain,
    )  # fmt: skip
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
    load = {
        "n_bands": n_bands,
        "bytes_per_pixel": 40 * n_classes + 64,
        "bytes_waiting": 4 * n_classes,
        "halo": halo,
    }
    try:
        blocks = cut_scene(SCENE, **load, memory=memory, n_workers=n_workers)
    except InputError as error:
        least = int(str(error).split("at least ")[1].split(" MB")[0]) * 1_000_000
        assert least > memory
        assert cut_scene(SCENE, **load, memory=least)  # what it asks for is enough
        return
    rows, columns = (max(sizes) + 2 * halo for sizes in blocks.sizes)
    solving = rows * columns * (40 * n_classes + 64)
    waiting = SCENE[1] * rows * 4 * n_classes
    reading = blocks.piece[0] * blocks.piece[1] * n_bands * BYTES_PER_BAND
    assert PROGRAM + waiting + blocks.n_workers * (solving + reading) <= memory
    assert 1 <= blocks.n_workers <= n_workers
    assert blocks.sizes == cut_scene(SCENE, **load, memory=memory, n_workers=1).sizes


@pytest.mark.parametrize(("halo", "side"), [(0, 512), (16, 512), (32, 512), (64, 1024)])
def test_with_memory_to_spare_halos_cost_no_more_than_a_quarter(halo: int, side: int) -> None:
    assert cut_scene(SCENE, **LOAD, halo=halo, memory="64GB").side == side
    assert (1 + 2 * halo / side) ** 2 < 1.27
    assert cut_scene(SCENE, **LOAD, halo=halo, memory="800MB").side <= side


def test_a_chosen_side_is_taken_raised_to_the_halo_or_refused() -> None:
    assert cut_scene(SCENE, **LOAD, halo=32, memory="2GB", side=700).side == 700
    assert cut_scene(SCENE, **LOAD, halo=32, memory="2GB", side=7).side == 32
    with pytest.raises(InputError, match="smaller block"):
        cut_scene(SCENE, **LOAD, halo=32, memory="2GB", side=3000)


def test_a_model_without_halo_maps_in_one_block_or_says_what_it_needs() -> None:
    assert len(cut_scene((300, 200), **LOAD, halo=None, memory="2GB")) == 1
    with pytest.raises(InputError, match=r"in blocks and needs 4[0-9]{4} MB"):
        cut_scene(SCENE, **LOAD, halo=None, memory="2GB")


@pytest.mark.parametrize("memory", ["much", "0", "-1GB"])
def test_impossible_memory_is_named(memory: str) -> None:
    with pytest.raises(InputError, match=memory):
        cut_scene(SCENE, **LOAD, halo=16, memory=memory)
