"""What a page of the explorer carries: planes of bytes, counts, and a picture."""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.image import imsave
from numpy.typing import NDArray

from hsreject.errors import InputError
from hsreject.io.grid import PixelGrid
from hsreject.measures.choosing import Goal
from hsreject.measures.cost import cost_envelope
from hsreject.measures.point import COUNTS
from hsreject.measures.uncertainty import Clusters, square_blocks, usual_side
from hsreject.plot.image_displays import INFRARED, FalseColorDisplay
from hsreject.rejection.decision import decide
from hsreject.rejection.ranking import UNKNOWN, Ranking, node_codes, unknown_first
from hsreject.report.figures import ground
from hsreject.schema import (
    BAND,
    MAP_DIMS,
    OPERATING_POINT,
    REJECTED,
    X,
    Y,
    as_map,
    check_dims,
    check_label_type,
    nodata_values,
)
from hsreject.schema.class_tree import ClassTree
from hsreject.schema.classes import ClassTable

_ARRAYS = {
    "u1": "Uint8Array",
    "u2": "Uint16Array",
    "i4": "Int32Array",
    "f4": "Float32Array",
    "f8": "Float64Array",
}
_MOST_LEVELS = 65_535  # thresholds of a system: ranks of pixels are numbers of 16 bits
_MOST_SAMPLES = 200_000  # reference pixels behind the table of classes; of more every n-th is taken
N_LEVEL_PLANES = 21  # of a system that may answer with groups
_RIGHT, _WRONG = "#8cc7e8", "#c23b00"  # apart in lightness, too
_LOSSLESS_PIXELS = 500_000  # larger pictures are JPEG


@dataclass(frozen=True, eq=False)
class MapStack:
    """Labels and what rejects them, on the full grid: one plane, or one per operating point."""

    label: NDArray[Any]  # (plane, y, x)
    has_data: NDArray[np.bool_]  # (y, x)
    confidence: NDArray[Any] | None  # (y, x), for one plane
    rejected: NDArray[np.bool_] | None  # (plane, y, x), where each plane is an operating point


def map_stack(maps: xr.Dataset, *, name: str, nodata: int | None) -> MapStack:
    """Return the maps of one system, checked, or say what is wrong with them."""
    by_point = OPERATING_POINT in maps["label"].dims
    needed = "rejected" if by_point else "confidence"
    if needed not in maps:
        raise InputError(
            f"{name} has no variable '{needed}' beside 'label' (it has "
            f"{', '.join(map(str, maps))}). One label map needs a confidence, larger is more "
            f"certain; a label map for each '{OPERATING_POINT}' needs a map of what it rejects."
        )
    dims = (OPERATING_POINT, *MAP_DIMS) if by_point else MAP_DIMS
    label = check_dims(maps["label"], dims, name="label")
    check_label_type(label.dtype, name="label")
    values = label.values.reshape(-1, *label.shape[-2:])
    gaps = [*nodata_values(label), *([] if nodata is None else [nodata])]
    has_data: Any = ~np.isin(values, gaps).any(axis=0)
    rejected = confidence = None
    if by_point:
        rejected = check_dims(maps["rejected"], dims, name="rejected").values.astype(bool)
    else:
        confidence = as_map(maps["confidence"], name="confidence").values
        has_data &= ~np.isnan(confidence)
        if UNKNOWN in maps:  # rejected first
            confidence = unknown_first(confidence, as_map(maps[UNKNOWN], name=UNKNOWN).values)
    _check(values, confidence, has_data, name)
    return MapStack(values, has_data, confidence, rejected)


def level_planes(maps: xr.Dataset) -> xr.Dataset:
    """Return the answers of a ranking at some thresholds, `label` and `rejected`, for a page.

    Thresholds are those of every twentieth of the scene, and that of the delivered map, which is
    the attribute `threshold`, if there is one. Rejected pixels have their coarsest answer.
    """
    stated = maps.attrs.get("threshold", np.inf)
    ranking = Ranking.of(maps).load()
    assert ranking.tree is not None  # noqa: S101 (called for maps with levels)
    goals = (Goal(fraction=share) for share in np.linspace(0, 1, N_LEVEL_PLANES))
    places = {decide(ranking, goal).threshold for goal in goals}
    coarsest = node_codes(ranking.label.values, ranking.tree)
    planes, rejected = [], []
    for threshold in sorted({*places, stated}):
        answer = ranking.answers(threshold)
        is_rejected = answer.values == REJECTED
        planes.append(answer.copy(data=np.where(is_rejected, coarsest, answer.values)))
        rejected.append(answer.copy(data=is_rejected).drop_attrs())
    return xr.Dataset(
        {
            "label": xr.concat(planes, dim=OPERATING_POINT, combine_attrs="override"),
            "rejected": xr.concat(rejected, dim=OPERATING_POINT),
        }
    )


def _check(
    values: NDArray[Any],
    confidence: NDArray[Any] | None,
    has_data: NDArray[np.bool_],
    name: str,
) -> None:
    """Raise unless labels are of classes, and a confidence tells which pixels to reject first."""
    if not has_data.any():
        raise InputError(f"{name} has no pixel with data: there is nothing to show.")
    labels = values[:, has_data]
    if labels.min() < 0:
        raise InputError(
            f"The labels of {name} must not be negative (found {labels.min()}). If that means no "
            f"data, say nodata={labels.min()}."
        )
    if n_zero := np.count_nonzero(labels == REJECTED):
        raise InputError(
            f"The label of {name} is 0 at {n_zero} pixels that have a confidence. If 0 means "
            "rejected, give the labels before rejection; if it means no data, say nodata=0."
        )
    if confidence is None:
        return
    low, high = confidence[has_data].min(), confidence[has_data].max()
    if not np.isfinite([low, high]).all() or low == high:
        raise InputError(
            f"The confidence of {name} must be finite and differ from pixel to pixel, larger where "
            f"more certain (found {low:g} to {high:g}). Clip what is infinite, or give another map."
        )


def packed(array: NDArray[Any], **how: object) -> dict[str, Any]:
    """Return an array as JSON: little-endian, deflated, in base64, with its type in JavaScript."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    text = base64.b64encode(zlib.compress(plain.tobytes())).decode("ascii")
    return {"packed": text, "type": _ARRAYS[array.dtype.str[1:]], **how}


def _as_planes(planes: NDArray[Any]) -> dict[str, Any]:
    """Return planes, each but the first as what changes (xor) from the one before."""
    changes = planes.copy()
    changes[1:] ^= planes[:-1]
    return packed(changes, planes=len(planes))


def _as_steps(numbers: NDArray[Any], dtype: type = np.int32) -> dict[str, Any]:
    """Return numbers as the steps from one to the next."""
    return packed(np.diff(numbers, prepend=0).astype(dtype), steps=True)


def payload(  # noqa: PLR0913 (one argument per thing that a page may show)
    stacks: Mapping[str, MapStack],
    references: Mapping[str, xr.DataArray],
    classes: ClassTable,
    scene: xr.DataArray | None,
    grid: xr.DataArray,
    *,
    step: int,
    spacing: int,
    group: NDArray[np.integer] | None,
    certified: float | None,
) -> dict[str, Any]:
    """Return what the page carries when it shows every `step`-th row and column.

    `references` are `reference`, what is known, and `test`, or nothing. `grid` is that of the whole
    map, of which every `spacing`-th row and column was taken already. `group` (y, x) says what errs
    together, instead of blocks; `certified` is a threshold of the first system.
    """
    coded = {name: _codes(array.values, classes) for name, array in references.items()}
    relation = _relation(classes, grid)
    systems: list[dict[str, Any]] = []
    for name, stack in stacks.items():
        codes = np.where(stack.has_data, _codes(stack.label, classes), np.uint8(0))
        truth = coded.get("test", np.zeros_like(codes[0]))
        marked = None if systems else certified
        systems.append(
            {"name": name, **_system(stack, codes, truth, step, group, relation, marked)}
        )
    height, width = next(iter(stacks.values())).has_data[::step, ::step].shape
    n_samples = int((coded["test"] > 0).sum()) if coded else 0
    shown = {name: packed(codes[::step, ::step]) for name, codes in coded.items()}
    groups = np.flatnonzero((relation != np.eye(len(relation), dtype=bool)).any(axis=1))
    return {
        "height": height,
        "width": width,
        **_place(grid, height, step * spacing),
        "layers": [
            "labels",
            *(["outcome", "confidence", "reference"] if coded else ["confidence"]),
        ],
        "classes": classes.names,
        "below": {str(code): np.flatnonzero(relation[code]).tolist() for code in groups},
        "colors": {
            "labels": classes.colors,
            "reference": classes.colors,
            "outcome": [_RIGHT, _WRONG],
            # from uncertain, dark, to certain, bright; readable without color vision
            "confidence": [to_hex(c) for c in mpl.colormaps["cividis"](np.linspace(0, 1, 255))],
        },
        "systems": systems,
        "reference": shown.get("reference"),
        "test": shown.get("test"),
        "picture": None if scene is None else _picture(scene),
        "nth": -(-n_samples // _MOST_SAMPLES),  # test pixel behind the accuracies of classes
    }


def _codes(labels: NDArray[Any], classes: ClassTable) -> NDArray[np.uint8]:
    """Return 1 + the place of each label in the class table, 0 where it is not in it."""
    values = np.array(classes.values)
    order = np.argsort(values)
    place = order[np.minimum(np.searchsorted(values[order], labels), values.size - 1)]
    return np.where(values[place] == labels, place + 1, 0).astype(np.uint8)


def _relation(classes: ClassTable, grid: xr.DataArray) -> NDArray[np.bool_]:
    """Return whether a class (column) lies below an answer (row), both as codes."""
    relation = np.eye(len(classes) + 1, dtype=bool)
    tree = ClassTree.from_attrs(grid.attrs)
    if tree is not None:
        values = np.array(classes.values)
        relation[1:, 1:] |= tree.holds(values[:, None], values[None])
    return relation


def _system(
    stack: MapStack,
    codes: NDArray[np.uint8],
    truth: NDArray[np.uint8],
    step: int,
    group: NDArray[np.integer] | None,
    relation: NDArray[np.bool_],
    certified: float | None,
) -> dict[str, Any]:
    """Return a system: its operating points, r ascending, its pixels, and its samples.

    A threshold gives one plane of labels and ranks: point k rejects the ranks below k. Maps that
    differ from point to point give a plane per point, with rank 0 where it rejects, else 1. A label
    is right where the class of the reference lies below it: `relation`, of codes.
    """
    used, shown = (truth > 0) & stack.has_data, np.s_[..., ::step, ::step]
    shown_data, levels = stack.has_data[shown], None
    if stack.confidence is None:
        keep: Any = ~np.asarray(stack.rejected)
        n_rejected = (~keep[shown] & shown_data).sum(axis=(1, 2))
        order = np.argsort(n_rejected, kind="stable")
        codes, keep, n_rejected = codes[order], keep[order], n_rejected[order]
        ranks, sample_ranks = keep[shown], keep[:, used]
    else:
        confidence = stack.confidence
        if confidence.dtype != np.float32:
            confidence = confidence.astype(np.float64)
        of_map, of_samples = confidence[shown], confidence[used]
        levels = _levels(of_map[shown_data], of_samples, certified)
        ranks, sample_ranks = (
            np.searchsorted(levels, values, side="right")[np.newaxis] - 1
            for values in (np.where(shown_data, of_map, levels[0]), of_samples)
        )
        n_rejected = _below(ranks[0][shown_data], levels.size)
    decision, reference = codes[:, used], truth[used]
    right = relation[decision, reference]
    clusters = _clusters(used, group, right)
    *counts, squares = _sample_counts(right, sample_ranks, clusters, levels)
    n_pixels = int(shown_data.sum())
    nth = slice(None, None, -(-reference.size // _MOST_SAMPLES) or 1)
    blocks = clusters[0].block[nth] if clusters else np.zeros(0, dtype=np.intp)
    return {
        "points": n_rejected.size,
        "pixels": n_pixels,
        "nRejected": _as_steps(n_rejected),
        **{n: _as_steps(c) for n, c in zip(("an", "mn", "ar", "mr"), counts, strict=True)},
        "squares": _as_steps(squares, np.float64),
        "correlation": [one.correlation for one in clusters],
        "critical": next((c.critical for c in clusters if np.isfinite(c.critical)), None),
        "blocks": int(blocks.max(initial=-1)) + 1,
        "sampleBlocks": packed(blocks.astype(np.int32)),
        "thresholds": None if levels is None else packed(levels),
        "labels": _as_planes(codes[shown]),
        "ranks": _as_planes(ranks.astype(np.uint16 if levels is not None else np.uint8)),
        "truth": packed(reference[nth]),
        "sampleLabels": _as_planes(decision[:, nth]),
        "sampleRanks": _as_planes(sample_ranks[:, nth].astype(np.uint16)),
        "certified": None
        if certified is None or levels is None
        else n_rejected[np.searchsorted(levels, certified)] / n_pixels,
        "winners": _winners(counts, by_threshold=levels is not None) if reference.size else [],
    }


def _sample_counts(
    right: NDArray[np.bool_],
    ranks: NDArray[Any],
    clusters: tuple[Clusters, ...],
    levels: NDArray[np.floating] | None,
) -> tuple[NDArray[np.int64], ...]:
    """Return the four counts of every point, and the sums of squares that its interval needs."""
    if levels is None:
        keep = ranks > 0
        parts = (right & keep, ~right & keep, right & ~keep, ~right & ~keep)
        of_planes = [one.sum_of_squares(plane) for one, plane in zip(clusters, keep, strict=False)]
        return *(part.sum(axis=1) for part in parts), np.array(of_planes or [0] * len(keep))
    accurate, misclassified = (
        _below(ranks[0][part], levels.size) for part in (right[0], ~right[0])
    )
    squares = np.zeros_like(accurate)
    if clusters:
        squares = clusters[0].sums_of_squares_above(ranks[0], np.arange(squares.size))
    above = accurate[-1] - accurate, misclassified[-1] - misclassified
    return *above, accurate, misclassified, squares


def _below(ranks: NDArray[np.integer], n_levels: int) -> NDArray[np.int64]:
    """Return how many pixels each point rejects: those of a lower rank than its number."""
    return np.append(0, np.cumsum(np.bincount(ranks, minlength=n_levels)))


def _clusters(
    used: NDArray[np.bool_], group: NDArray[np.integer] | None, right: NDArray[np.bool_]
) -> tuple[Clusters, ...]:
    """Return the clusters of the test pixels, given which are right on each plane."""
    if not used.any():
        return ()
    row, column = np.nonzero(used)
    blocks = square_blocks(row, column, usual_side(used.shape))
    return tuple(Clusters.of(plane, blocks if group is None else group[used]) for plane in right)


def _levels(
    shown: NDArray[np.floating], of_samples: NDArray[np.floating], certified: float | None
) -> NDArray[np.floating]:
    """Return the thresholds on offer: all confidences, or quantiles of samples and map."""
    marked = np.array([] if certified is None else [certified], dtype=shown.dtype)
    every = np.unique(np.concatenate([shown, of_samples, marked]))
    if every.size <= _MOST_LEVELS:
        return every
    levels = [marked]
    for values in (np.unique(of_samples), shown):  # of the samples each, where that is possible
        places = np.linspace(0, values.size - 1, min(values.size, _MOST_LEVELS // 2))
        levels.append(np.sort(values)[places.astype(np.intp)])
    return np.unique(np.concatenate(levels))


def _winners(counts: list[NDArray[np.int64]], *, by_threshold: bool) -> list[tuple[int, float]]:
    """Return the points that are cheapest at some cost, each with the lowest such cost."""
    columns = zip(COUNTS, counts, strict=True)
    envelope = cost_envelope(xr.Dataset({name: (OPERATING_POINT, c) for name, c in columns}))
    index = envelope["index"].values
    if by_threshold:
        # thresholds that reject the same test pixels are one operating point: that of the highest
        rejected = counts[2] + counts[3]
        index = np.searchsorted(rejected, rejected[index], side="right") - 1
    return list(zip(index.tolist(), envelope["lowest_cost"].values.tolist(), strict=True))


def _place(grid: xr.DataArray, height: int, step: int) -> dict[str, Any]:
    """Return where the pixels shown lie, one in `step`, as far as the map knows.

    `place` is x and y of the first and the step between two; `areas` the hectares that a pixel of
    each row stands for; `ground` the metres across a pixel and where north is.
    """
    on_ground, place = PixelGrid.of(grid), None
    if all(dim in grid.coords and grid.sizes[dim] > 1 for dim in MAP_DIMS):
        place = []
        for centers in (grid.coords[dim].values.astype(np.float64) for dim in (X, Y)):
            place += [
                float(centers[0]),
                float(centers[-1] - centers[0]) / (centers.size - 1) * step,
            ]
    hectares, scale = on_ground.pixel_areas(), ground(on_ground)
    if hectares is not None:
        hectares = np.broadcast_to(hectares, grid.shape[-2:])[::step].mean(axis=1)[:height]
    return {
        "step": step,
        "shape": [grid.sizes[Y], grid.sizes[X]],
        "grid": str(on_ground) if on_ground.georeferenced else "",
        "place": place,
        "areas": None if hectares is None else packed(hectares * float(step) ** 2),
        "ground": None if scale is None else [scale[0] / on_ground.width * step, scale[1]],
    }


def _picture(cube: xr.DataArray) -> str:
    """Return a false-color picture of a scene as a data URL."""
    bands = (0, 1, 2) if cube.sizes[BAND] == 3 else None
    pixels = FalseColorDisplay.from_cube(cube, wavelengths=INFRARED, bands=bands).picture.values
    kind = "png" if pixels[..., 0].size <= _LOSSLESS_PIXELS else "jpeg"
    stream = io.BytesIO()
    imsave(stream, pixels if kind == "png" else pixels[..., :3], format=kind)
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
