"""Blocks cover a scene once, and their windows are unions of the chunks that are read."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hsreject.mapping.blocks import PIXELS_OF_A_PIECE, Blocks

REPEATABLE = settings(deadline=None, derandomize=True, max_examples=40)
CUTS = st.builds(
    Blocks,
    st.tuples(st.integers(1, 400), st.integers(1, 400)),
    side=st.integers(9, 150),
    halo=st.integers(0, 90),
)


@REPEATABLE
@given(CUTS)
def test_blocks_cover_every_pixel_once_and_know_their_number(blocks: Blocks) -> None:
    covered = np.zeros(blocks.shape, int)
    for number, block in enumerate(blocks):
        assert block.number == number
        assert max(block.shape) <= blocks.side
        covered[block.y.start : block.y.stop, block.x.start : block.x.stop] += 1
    assert (covered == 1).all()
    assert number + 1 == len(blocks)


@REPEATABLE
@given(CUTS)
def test_windows_are_wider_by_the_halo_or_end_with_the_scene(blocks: Blocks) -> None:
    for block in blocks:
        for span, size in zip((block.y, block.x), blocks.shape, strict=True):
            assert span.first == max(span.start - blocks.halo, 0)
            assert span.last == min(span.stop + blocks.halo, size)
            window = np.arange(size)[span.window]
            np.testing.assert_array_equal(window[span.inside], np.arange(span.start, span.stop))


@REPEATABLE
@given(CUTS)
def test_no_chunk_crosses_the_border_of_a_window(blocks: Blocks) -> None:
    for axis, dim in enumerate(("y", "x")):
        edges = {0, *np.cumsum(blocks.chunks[dim]).tolist()}
        assert max(edges) == blocks.shape[axis]
        for block in blocks:
            span = (block.y, block.x)[axis]
            assert {span.first, span.last} <= edges


@REPEATABLE
@given(CUTS)
def test_sizes_of_blocks_are_those_of_the_assembled_map(blocks: Blocks) -> None:
    rows, columns = blocks.sizes
    assert [block.shape for block in blocks] == [
        (row, column) for row in rows for column in columns
    ]
    assert max(rows) - min(rows) <= 1  # no slivers


@pytest.mark.parametrize("width", [100, 700, 40_000])
def test_chunks_are_pieces_that_can_be_read_at_a_time(width: int) -> None:
    chunks = Blocks((3000, width), side=512, halo=32).chunks
    assert max(chunks["y"]) * max(chunks["x"]) <= PIXELS_OF_A_PIECE
