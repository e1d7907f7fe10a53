"""Where to label next: against regions and depths that can be counted by hand."""

import numpy as np
import pytest
import xarray as xr
from scipy import ndimage

import hsreject as hr
from hsreject.errors import InputError
from hsreject.handover import next_labels as module
from hsreject.handover import regions as regions_module
from tests.handover.test_polygons_and_sieve import place, random_map


def two_regions() -> xr.DataArray:
    """Return a map that rejects a square of 5 x 5 and one of 3 x 3 pixels."""
    label = np.ones((12, 20), dtype=np.uint8)
    label[2:7, 2:7] = label[2:5, 12:15] = 0
    return xr.DataArray(label, dims=("y", "x"))


def pixels(asked: hr.NextLabels) -> list[tuple[int, int]]:
    return list(zip(asked.points.row.tolist(), asked.points.column.tolist(), strict=True))


def test_the_centres_of_the_largest_regions_come_first() -> None:
    asked = hr.next_labels(two_regions(), 2)
    assert pixels(asked) == [(4, 4), (3, 13)]
    assert asked.area.tolist() == [25, 9]
    assert asked.reason[0] == "rejected 25 pixels"


def test_a_large_region_is_asked_about_again_where_nothing_is_known_yet() -> None:
    label = np.ones((20, 20), dtype=np.uint8)
    label[2:18, 2:18] = label[0, 0] = 0
    asked = hr.next_labels(label, 5)
    inside = label == 0
    inside[0, 0] = False
    for i, pixel in enumerate(pixels(asked)):
        depth = ndimage.distance_transform_edt(inside)
        assert depth[pixel] == depth.max(), i
        inside[pixel] = False
    assert asked.area.sum() == 16 * 16  # every pixel belongs to its nearest point


@pytest.mark.parametrize("seed", range(5))
def test_points_are_rejected_pixels_that_are_not_excluded_and_differ(seed) -> None:
    label = random_map(seed)
    exclude = np.random.default_rng(seed).random(label.shape) < 0.5
    asked = hr.next_labels(label, 30, exclude=exclude)
    assert len(set(pixels(asked))) == len(asked) == 30
    assert not any(exclude[pixel] for pixel in pixels(asked))
    assert all(label[pixel] == 0 for pixel in pixels(asked))


def test_regions_of_different_labels_are_asked_about_apart() -> None:
    best = xr.DataArray(np.repeat([[1, 2]], 3, axis=1).repeat(3, axis=0), dims=("y", "x"))
    maps = hr.filled_map(best.astype(np.uint8), np.ones((3, 6), dtype=bool))
    assert pixels(hr.next_labels(maps, 2)) == [(1, 1), (1, 4)]


def test_a_large_region_is_seen_coarsely(monkeypatch) -> None:
    label = np.ones((60, 80), dtype=np.uint8)
    label[10:50, 20:70] = 0
    exclude = np.random.default_rng(0).random(label.shape) < 0.9
    monkeypatch.setattr(module, "_LOOKED_AT", 100)  # pixels: cells of five
    asked = hr.next_labels(label, 3, exclude=exclude)
    assert abs(pixels(asked)[0][0] - 29.5) <= 5  # as deep as a cell can tell
    assert not any(exclude[pixel] or label[pixel] for pixel in pixels(asked))
    assert asked.area.sum() == pytest.approx(40 * 50)


def test_doubt_and_novelty_weigh_and_are_named() -> None:
    label = two_regions()
    best = label.where(label > 0, 1).astype(np.uint8)
    best = hr.schema.attach_classes(best, hr.ClassTable.from_names(["corn", "soy", "hay"]))
    probability = xr.DataArray(
        np.stack([np.full(label.shape, p) for p in (0.9, 0.02, 0.08)]),
        dims=("category", "y", "x"),
        coords={"category": [1, 2, 3]},
        attrs={"calibrated": 1},
    )
    maps = hr.filled_map(best, label == 0, probability=probability)
    asked = hr.next_labels(maps, 2)
    assert pixels(asked) == [(4, 4), (3, 13)]
    assert asked.reason.tolist() == [
        "rejected 25 pixels, between corn and hay",
        "rejected 9 pixels, between corn and hay",
    ]
    unknown = np.zeros(label.shape, dtype=bool)
    unknown[2:5, 12:15] = True  # nine pixels of doubt 1 outweigh 25 of doubt 0.1
    maps = hr.filled_map(best, label == 0, probability=probability, unknown=unknown)
    asked = hr.next_labels(maps, 1)
    assert pixels(asked) == [(3, 13)]
    assert "unlike every training pixel" in asked.reason[0]


def test_a_lazy_map_is_read_some_rows_at_a_time(monkeypatch) -> None:
    label = two_regions()
    monkeypatch.setattr(regions_module, "ROWS", 3)
    asked = hr.next_labels(label.chunk({"y": 5, "x": 7}), 2)
    assert pixels(asked) == [(4, 4), (3, 13)]


def test_chosen_points_are_no_sample(tmp_path) -> None:
    label = place(two_regions().values)
    asked = hr.next_labels(label, 8)
    path = tmp_path / "points.csv"
    asked.write(path)
    confidence = np.where(label.values == 0, 0.1, 0.9)
    for sample in (asked.points, hr.open_sample(path, label), path):
        with pytest.raises(InputError, match="chosen"):
            hr.certify(label, confidence, sample, assume_random=True)
        with pytest.raises(InputError, match="chosen"):
            hr.assess(label, sample, assume_random=True)


def test_a_map_that_rejects_nothing_has_nothing_to_ask() -> None:
    with pytest.raises(InputError, match="nothing to ask"):
        hr.next_labels(np.ones((4, 4), dtype=np.uint8))
