"""A first configuration for your own files: what ``hsreject init`` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import tomli_w
import xarray as xr
from dask.base import compute
from numpy.typing import NDArray

from hsreject.errors import InputError
from hsreject.files import reading
from hsreject.io.describe import note_on_zeros
from hsreject.io.grid import PixelGrid
from hsreject.io.lookup import LookupTable
from hsreject.io.remote import as_path, existing_scene
from hsreject.io.scene import Kind, file_kind
from hsreject.io.vectors.vector import is_known, read_columns
from hsreject.measures.choosing import Goal
from hsreject.pipeline.parts import Files
from hsreject.progress import ProgressCallback, counting_tasks, no_progress
from hsreject.registry import check_choice
from hsreject.schema import (
    BAND,
    LARGEST_LABEL,
    NO_REFERENCE,
    POLYGON,
    X,
    Y,
    class_table,
    pixels_of,
    valid_pixels,
    without_pixels_of,
)
from hsreject.splits.polygons import CLUSTERED, cluster_size, polygon_numbers, touching_share
from hsreject.templates import templates

_CLASS_ATTRIBUTES = (  # what people call it, likeliest first
    "class", "class_name", "classname", "land_cover", "landcover", "lulc", "lc", "cover", "label",
    "labels", "category", "crop", "species", "type", "class_id", "classid", "code", "name",
    "reference",
)  # fmt: skip
_MOST_CLASSES = 255
_SAMPLES = ((2500, 50), (500, 25), (0, 10))  # a typical class, its training pixels
SAMPLINGS = ("per_class", "fraction", "blocks", "polygons")
_FEW_POLYGONS = 4  # of a typical class: half of fewer is too little to learn from
_WITHIN_POLYGONS = 50  # training pixels per class say what polygons say; more are near copies
_WHOLLY_LABELLED = 0.9  # share from which on labels are a map, whose pixels may be drawn at random
_TOUCHING = 0.05  # share beside another class from which on labels are a map of parts


@dataclass(frozen=True)
class Draft:
    """A configuration as text, and what its user should know."""

    text: str
    summary: str
    notes: tuple[str, ...]  # what was decided or may surprise


class _Count(NamedTuple):
    value: int
    name: str
    n_pixels: int


def draft_configuration(
    files: Files,
    *,
    align: Literal["exact", "nearest"] | None = None,
    sampling: str | None = None,
    goal: Goal | None = None,
    progress: ProgressCallback = no_progress,
) -> Draft:
    """Look at a scene and its labels, and return a configuration that runs as it is.

    Options that are not given are chosen where a file allows several, and the notes say so. Labels
    on another grid are brought onto that of the scene, unless `align` says how they lie.
    """
    if sampling is not None:
        check_choice("sampling", sampling, SAMPLINGS)
    notes: list[str] = []
    look = _looked_at(files, align, notes, progress)
    if sampling is None:
        sampling = _suitable_sampling(look.reference, look.labelled_share)
        if sampling == "blocks":
            notes.append(
                "The labels are a map of parts of the scene, in which classes touch: blocks of it "
                "are for training or for testing, [sampling] name = 'blocks'."
            )
    of_sampling = _of_sampling(sampling, look.counts, look.reference, notes)
    text = _rendered(look, goal or Goal(accuracy=0.95), sampling, of_sampling, notes)
    return Draft(text, look.summary, tuple(notes))


@dataclass(frozen=True, eq=False)
class _Look:
    """What was seen of a scene and its labels."""

    files: Files  # with what was chosen where a file allows several
    moved: str | None  # how labels on another grid are brought onto that of the scene
    cube: xr.DataArray
    reference: xr.DataArray  # the labels where the scene has data
    counts: list[_Count]
    labelled_share: float  # of the pixels with data

    @property
    def summary(self) -> str:
        """The size of it in one line."""
        rows, columns, bands = (self.cube.sizes[dim] for dim in (Y, X, BAND))
        n_labelled = sum(count.n_pixels for count in self.counts)
        return (
            f"{rows} rows x {columns} columns x {bands} bands; {len(self.counts)} classes in "
            f"{n_labelled} labelled pixels"
        )


def _looked_at(
    files: Files,
    align: Literal["exact", "nearest"] | None,
    notes: list[str],
    progress: ProgressCallback,
) -> _Look:
    """Open scene and labels, and count; or say why nothing can be learned."""
    scene, labels = existing_scene(str(files.path)), existing_scene(files.labels)
    files = replace(files, path=str(scene), labels=str(as_path(files.labels)))
    if files.attribute is None and file_kind(labels) is Kind.VECTOR:
        attribute, paired = _class_attribute(labels, files.labels_variable, notes)
        names = files.names or {str(code): name for code, name in (paired or {}).items()} or None
        files = replace(files, attribute=attribute, names=names)
    cube = files.open_scene()
    if cube.sizes[BAND] < 2:
        raise InputError(
            f"{files.path} has one band, which is not a scene. Give the scene first and then its "
            "labels: hsreject init SCENE LABELS."
        )
    if files.nodata is not None:
        cube = without_pixels_of(cube, files.nodata)
    reference, moved = _aligned(files, cube, align, notes)
    notes += [*cube.attrs.get("guesses", ()), *reference.attrs.get("guesses", ())]
    with counting_tasks("reading pixels", progress):
        valid, n_zeros = compute(valid_pixels(cube).data, pixels_of(cube, 0).sum().data)
    if n_zeros:
        notes.append(note_on_zeros(int(n_zeros), valid.size))
    counts = _counts(reference, valid, labels, notes)
    with_data = np.where(valid, reference.values, reference.dtype.type(NO_REFERENCE))
    n_labelled = sum(count.n_pixels for count in counts)
    share = float(n_labelled / valid.sum())
    return _Look(files, moved, cube, reference.copy(data=with_data), counts, share)


def _rendered(
    look: _Look, goal: Goal, sampling: str, of_sampling: Mapping[str, Any], notes: list[str]
) -> str:
    """Return the configuration as text, with what was seen as comments."""
    files, counts = look.files, look.counts
    table = {
        "name": "files",
        "path": files.path,
        "variable": files.variable,
        "band_axis": files.band_axis,
        "nodata": files.nodata,
        "labels": files.labels,
        "labels_variable": files.labels_variable,
        "labels_nodata": files.labels_nodata,
        "attribute": files.attribute,
        "align": look.moved,
    }
    plain = [f"class {number}" for number in range(1, len(counts) + 1)]
    lookup = LookupTable.of(look.cube)
    in_sensor = f"sensor geometry; maps are written with {lookup.grid}" if lookup else None
    filters = {
        "toml": tomli_w.dumps,
        "quoted": lambda value: json.dumps(value, ensure_ascii=False),
        # a character that would end the line, and the comment with it, becomes a space
        "one_line": lambda text: "".join(c if c.isprintable() else " " for c in str(text)),
    }
    return (
        templates("hsreject.pipeline", filters)
        .get_template("draft.toml.jinja")
        .render(
            summary=look.summary,
            title=as_path(str(files.path)).stem,
            goal=goal,
            place=in_sensor or PixelGrid.of(look.cube),
            notes=notes,
            scene={key: value for key, value in table.items() if value is not None},
            names=files.names,
            unnamed=plain if [count.name for count in counts] == plain else [],
            counts=counts,
            sampling=sampling,
            **of_sampling,
        )
    )


def _suitable_sampling(reference: xr.DataArray, labelled_share: float) -> str:
    """Return what suits the labels: single pixels or a whole map, polygons, or parts of a map."""
    from_vector = POLYGON in reference.coords  # which knows its polygons
    clustered = cluster_size(reference) >= (1.5 if from_vector else CLUSTERED)
    if not clustered or labelled_share >= _WHOLLY_LABELLED:
        return "per_class"
    whole_parts = not from_vector and touching_share(reference) > _TOUCHING
    return "blocks" if whole_parts else "polygons"


def _of_sampling(
    sampling: str, counts: list[_Count], reference: xr.DataArray, notes: list[str]
) -> dict[str, Any]:
    """Return what the section that says which pixels are for training has to know."""
    typical = int(np.median([count.n_pixels for count in counts]))
    n_per_class = next(n for least, n in _SAMPLES if typical >= least)
    values: dict[str, Any] = {"typical": typical, "n_per_class": n_per_class}
    if sampling != "polygons":
        return values | {
            "small": [c.name for c in counts if 1 < c.n_pixels < 2 * n_per_class],
            "single": [c.name for c in counts if c.n_pixels == 1],
        }
    numbers = polygon_numbers(reference)
    n_polygons = [len(np.unique(numbers[reference.values == c.value])) for c in counts]
    notes.append(
        f"The labels lie in {sum(n_polygons)} polygons. They are kept whole: [sampling] name = "
        "'polygons'."
    )
    return values | {
        "n_polygons": sum(n_polygons),
        "all_train": np.median(n_polygons) < _FEW_POLYGONS,
        "alone": [c.name for c, n in zip(counts, n_polygons, strict=True) if n == 1],
        "thinned": _WITHIN_POLYGONS if typical > 2 * _WITHIN_POLYGONS else None,
    }


def _class_attribute(
    path: Path, layer: str | None, notes: list[str]
) -> tuple[str, dict[int, str] | None]:
    """Return the attribute that most likely holds the class, and the names of its codes, if any.

    Of a column of names and one of codes that say the same, the names are taken, with these codes.
    """
    with reading(path):
        _, columns, _ = read_columns(path, layer=layer)
    if max(map(len, columns.values()), default=0) == 1:
        raise InputError(
            f"{path} has one feature in all: a map needs labels of at least two classes, and "
            "several features of each to be tested. Draw more."
        )
    possible = [name for name, values in columns.items() if _may_be_classes(values)]
    if not possible:
        raise InputError(
            f"No attribute of {path} looks like classes: names or whole numbers that several "
            f"features share. It has: {', '.join(columns) or 'none'}. Choose one with --attribute."
        )

    def rank(name: str) -> tuple[int, bool]:
        is_usual = name.lower() in _CLASS_ATTRIBUTES
        place = _CLASS_ATTRIBUTES.index(name.lower()) if is_usual else len(_CLASS_ATTRIBUTES)
        return place, columns[name].dtype.kind != "O"  # names before numbers

    ranked = sorted(possible, key=rank)
    attribute, names = ranked[0], None
    for other in ranked[1:]:
        texts, codes = sorted((attribute, other), key=lambda name: columns[name].dtype.kind != "O")
        names = _paired(columns[codes], columns[texts])
        if names is not None:
            notes.append(f"The classes: names in '{texts}', their numbers in '{codes}'.")
            attribute = texts
            possible = [name for name in possible if name != codes]
            break
    others = [name for name in possible if name != attribute]
    if others:
        notes.append(
            f"The classes: attribute '{attribute}'. For another one ({', '.join(others)}) change "
            "attribute."
        )
    return attribute, names


def _paired(codes: NDArray[Any], texts: NDArray[Any]) -> dict[int, str] | None:
    """Return the name of each code where a column of numbers and one of texts say the same."""
    if codes.dtype.kind == "O" or texts.dtype.kind != "O":
        return None
    both = {
        (float(code), str(text).strip())
        for code, text in zip(codes.tolist(), texts.tolist(), strict=True)
        if is_known(code) and is_known(text)
    }
    names = {int(code): text for code, text in both if 0 < code <= LARGEST_LABEL}
    distinct = len(both) == len(names) == len(set(names.values())) > 1
    return dict(sorted(names.items())) if distinct else None


def _may_be_classes(values: NDArray[Any]) -> bool:
    """Tell whether a column holds few whole numbers or texts, most of them more than once."""
    entries = [value for value in values.tolist() if is_known(value)]
    if not entries or not all(isinstance(value, str | int | float) for value in entries):
        return False
    if any(isinstance(value, float) and not value.is_integer() for value in entries):
        return False
    n_classes = len(set(entries))
    return 2 <= n_classes <= _MOST_CLASSES and (2 * n_classes <= len(entries) or len(entries) < 20)


def _aligned(
    files: Files,
    cube: xr.DataArray,
    align: Literal["exact", "nearest"] | None,
    notes: list[str],
) -> tuple[xr.DataArray, str | None]:
    """Return the labels on the grid of the scene, and how they had to be aligned."""
    if align is not None:
        return replace(files, align=align).open_labels(cube), align
    try:
        return files.open_labels(cube), None
    except InputError as error:
        try:
            moved = replace(files, align="nearest").open_labels(cube)
        except InputError:
            raise error from None
    notes.append("The labels lie on another grid: they are brought onto that of the scene.")
    return moved, "nearest"


def _counts(
    reference: xr.DataArray, valid: NDArray[np.bool_], path: Path, notes: list[str]
) -> list[_Count]:
    """Return how many pixels with data each class has, or say why nothing can be learned."""
    classes = class_table(reference)
    size = max(classes.values, default=0) + 1
    drawn, numbers = (
        np.bincount(values, minlength=size)
        for values in (reference.values.ravel(), reference.values[valid])
    )
    counts = [
        _Count(value, name, int(numbers[value]))
        for value, name in zip(classes.values, classes.names, strict=True)
        if drawn[value]
    ]
    if sum(drawn[count.value] > 1 for count in counts) < 2:
        sizes = ", ".join(f"{c.name}: {drawn[c.value]}" for c in counts) or "no labelled pixel"
        raise InputError(
            f"{path} has fewer than two classes with at least two pixels on the scene ({sizes}). "
            "Label more, or choose another attribute or array of it."
        )
    empty = [count.name for count in counts if not count.n_pixels]
    if empty:
        raise InputError(
            f"The scene has no data where {path} has labels of {', '.join(empty)}. Label it "
            "elsewhere, or leave it out."
        )
    if lost := drawn[1:].sum() - numbers[1:].sum():
        notes.append(f"{lost} labelled pixels have no data in the scene and are not used.")
    return counts
