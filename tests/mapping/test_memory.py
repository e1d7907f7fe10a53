"""The bound of memory: blocks and workers follow from it, and the map does not from the workers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hsreject.errors import InputError
from hsreject.mapping.memory import PROGRAM, Load, bytes_of, share_memory

SCENE = (9000, 7000)
REPEATABLE = settings(deadline=None, derandomize=True)


@REPEATABLE
@given(
    n_bands=st.integers(1, 400),
    n_classes=st.integers(2, 60),
    halo=st.integers(0, 128),
    memory=st.integers(800_000_000, 16_000_000_000),
    n_workers=st.integers(1, 64),
)
def test_workers_and_their_windows_stay_within_memory(
    n_bands: int, n_classes: int, halo: int, memory: int, n_workers: int
) -> None:
    load = Load(n_bands, n_classes, 40)
    try:
        share = share_memory(SCENE, load, halo=halo, memory=memory, n_workers=n_workers)
    except InputError as error:
        least = int(str(error).split("at least ")[1].split(" MB")[0]) * 1_000_000
        assert least > memory
        assert share_memory(SCENE, load, halo=halo, memory=least)  # what it asks for is enough
        return
    rows, columns = (max(sizes) + 2 * halo for sizes in share.blocks.sizes)
    n_pixels = share.n_workers * rows * columns
    needed = n_pixels * (40 * n_classes + 64) + share.n_workers * 16_384 * n_bands * 16
    assert PROGRAM + needed <= memory
    assert 1 <= share.n_workers <= n_workers


@REPEATABLE
@given(st.integers(0, 64), st.integers(1, 64), st.integers(1, 64))
def test_blocks_do_not_depend_on_the_number_of_workers(halo: int, few: int, many: int) -> None:
    cuts = [
        share_memory(SCENE, Load(200, 16, 40), halo=halo, memory=3_000_000_000, n_workers=n).blocks
        for n in (few, many)
    ]
    assert cuts[0] == cuts[1]


@pytest.mark.parametrize(("halo", "side"), [(0, 512), (16, 512), (32, 512), (64, 1024)])
def test_with_memory_to_spare_halos_cost_no_more_than_a_quarter(halo: int, side: int) -> None:
    share = share_memory(SCENE, Load(200, 16, 40), halo=halo, memory=64_000_000_000)
    assert share.blocks.side == side
    assert (1 + 2 * halo / side) ** 2 < 1.27


def test_less_memory_makes_smaller_blocks() -> None:
    sides = [
        share_memory(SCENE, Load(200, 16, 40), halo=64, memory=memory).blocks.side
        for memory in (1_000_000_000, 900_000_000, 800_000_000)
    ]
    assert sides == sorted(sides, reverse=True)
    assert sides[0] > sides[2]


def test_a_chosen_side_is_taken_or_refused_but_not_changed() -> None:
    load = Load(200, 16, 40)
    assert share_memory(SCENE, load, halo=32, memory=2_000_000_000, side=700).blocks.side == 700
    with pytest.raises(InputError, match="or a smaller block"):
        share_memory(SCENE, load, halo=32, memory=2_000_000_000, side=3000)


def test_a_model_without_reach_maps_in_one_block_or_says_what_it_needs() -> None:
    load = Load(200, 16, 40)
    share = share_memory((300, 200), load, halo=None, memory=2_000_000_000)
    assert (len(share.blocks), share.blocks.halo) == (1, 0)
    with pytest.raises(InputError, match=r"cannot be mapped in blocks and needs 4[0-9]{4} MB"):
        share_memory(SCENE, load, halo=None, memory=2_000_000_000)


@pytest.mark.parametrize("memory", ["much", "0", "-1GB"])
def test_memory_that_is_none_is_named(memory: str) -> None:
    with pytest.raises(InputError, match=rf"like '2GB' .got '{memory}'"):
        bytes_of(memory)
