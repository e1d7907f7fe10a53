"""A first configuration for your own files: what ``hsreject init`` writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import tomli_w
import xarray as xr
from dask.base import compute
from numpy.typing import NDArray

from hsreject.errors import InputError
from hsreject.files import existing, reading
from hsreject.io.arrays import Layer, stored_arrays
from hsreject.io.describe import note_on_zeros, pixels_of, without_pixels_of
from hsreject.io.grid import Grid
from hsreject.io.labels import open_labels
from hsreject.io.lookup import LookupTable
from hsreject.io.remote import existing_scene
from hsreject.io.scene import Kind, file_kind, open_scene
from hsreject.io.vector import is_known, read_columns
from hsreject.measures.choosing import Goal
from hsreject.progress import ProgressCallback, counting_tasks, no_progress
from hsreject.registry import check_choice
from hsreject.sampling.polygons import CLUMPED, clump_size, polygon_numbers, touching_share
from hsreject.schema import (
    BAND,
    LARGEST_LABEL,
    NO_REFERENCE,
    POLYGON,
    X,
    Y,
    class_table,
    valid_pixels,
)

_ARRAYS = {Kind.NUMPY, Kind.MATLAB, Kind.MATLAB_HDF5}
_CLASS_ATTRIBUTES = (  # what people call it, likeliest first
    "class", "class_name", "classname", "land_cover", "landcover", "lulc", "lc", "cover", "label",
    "labels", "category", "crop", "species", "type", "class_id", "classid", "code", "name",
    "reference",
)  # fmt: skip
_MOST_CLASSES = 255
_SAMPLES = ((2500, 50), (500, 25), (0, 10))
"""How many training pixels per class, by the size of a typical class."""

SAMPLINGS = ("per_class", "fraction", "blocks", "polygons")
_FEW_POLYGONS = 4
"""Of a typical class: with fewer, half of them is too little to learn from, and all are needed."""

_WITHIN_POLYGONS = 50
"""Training pixels per class; more of the same polygons would be near copies of them."""

_WHOLLY_LABELLED = 0.9
"""From this share on labels are a map of the scene: its pixels may be drawn at random."""

_TOUCHING = 0.05
"""Share of pixels beside another class from which on labels are a map of parts of the scene."""


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


def draft_configuration(  # noqa: PLR0913 (all but two are options)
    scene: Path,
    labels: Path,
    *,
    variable: str | None = None,
    labels_variable: str | None = None,
    attribute: str | None = None,
    band_axis: int | None = None,
    nodata: int | None = None,
    scene_nodata: float | None = None,
    align: Literal["exact", "nearest"] | None = None,
    names: Mapping[int, str] | Sequence[str] | None = None,
    sampling: str | None = None,
    goal: Goal | None = None,
    progress: ProgressCallback = no_progress,
) -> Draft:
    """Look at a scene and its labels, and return a configuration that runs as it is.

    Options that are not given are chosen where a file allows several, and the notes say so.
    """
    if sampling is not None:
        check_choice("sampling", sampling, SAMPLINGS)
    notes: list[str] = []
    scene = existing_scene(scene)
    cubes = _arrays(scene, variable, 3)
    cubes.sort(key=lambda array: -int(np.prod(array.stored_shape)))
    variable = _first("scene", cubes, "the largest array", "variable", notes) or variable
    planes = _arrays(existing(labels), labels_variable, 2)
    if cubes:
        planes = [p for p in planes if p.stored_shape in _sides(cubes[0])] or planes
    why = "the first array of the size of the scene"
    labels_variable = _first("labels", planes, why, "labels_variable", notes) or labels_variable
    if band_axis is None and cubes and planes:
        sides = _sides(cubes[0])
        fits = [axis for axis in range(3) if sides[axis] == planes[0].stored_shape]
        band_axis = fits[0] if len(fits) == 1 else None
    if attribute is None and file_kind(labels) is Kind.VECTOR:
        attribute, paired = _class_attribute(labels, labels_variable, notes)
        names = names or paired
    cube = open_scene(scene, chunks="auto", variable=variable, band_axis=band_axis)
    if cube.sizes[BAND] < 2:
        raise InputError(
            f"{scene} has one band, which is not a scene. Give the scene first and then its "
            "labels: hsreject init SCENE LABELS."
        )
    if scene_nodata is not None:
        cube = without_pixels_of(cube, scene_nodata)
    options = {
        "attribute": attribute, "variable": labels_variable, "nodata": nodata, "names": names
    }  # fmt: skip
    reference, how = _aligned(labels, cube, options, align, notes)
    notes += [*cube.attrs.get("guesses", ()), *reference.attrs.get("guesses", ())]
    with counting_tasks("reading pixels", progress):
        valid, n_zeros = compute(valid_pixels(cube).data, pixels_of(cube, 0).sum().data)
    if n_zeros:
        notes.append(note_on_zeros(int(n_zeros), valid.size))
    counts = _counts(reference, valid, labels, notes)
    with_data = np.where(valid, reference.values, reference.dtype.type(NO_REFERENCE))
    reference = reference.copy(data=with_data)
    table = {
        "name": "files",
        "path": str(scene),
        "variable": variable,
        "band_axis": band_axis,
        "nodata": scene_nodata,
        "labels": str(labels),
        "labels_variable": labels_variable,
        "labels_nodata": nodata,
        "attribute": attribute,
        "align": how,
    }
    scene_table = {key: value for key, value in table.items() if value is not None}
    n_labelled = sum(count.n_pixels for count in counts)
    summary = (
        f"{cube.sizes[Y]} rows x {cube.sizes[X]} columns x {cube.sizes[BAND]} bands; "
        f"{len(counts)} classes in {n_labelled} labelled pixels"
    )
    if sampling is None:
        sampling = _suitable_sampling(reference, n_labelled / valid.sum())
        notes += [_PARTS] if sampling == "blocks" else []
    goal = goal or Goal(accuracy=0.95)
    place = _comments([f"Place: {_place(cube)}.", *notes])
    text = _TEMPLATE.format(
        summary=summary,
        title=tomli_w.dumps({"title": scene.stem}),
        goal=tomli_w.dumps({goal.kind: goal.value}),
        about=place,
        scene=tomli_w.dumps(scene_table) + _names(counts, names),
        classes=_class_lines(counts),
        sampling=_sampling(sampling, counts, reference, notes),
    )
    return Draft(text, summary, tuple(notes))


_PARTS = (
    "The labels are a map of parts of the scene, in which classes touch: blocks of it are for "
    "training or for testing, [sampling] name = 'blocks'."
)


def _suitable_sampling(reference: xr.DataArray, labelled_share: float) -> str:
    """Return what suits the labels: single pixels or a whole map, polygons, or parts of a map."""
    from_vector = POLYGON in reference.coords  # which knows its polygons
    clumped = clump_size(reference) >= (1.5 if from_vector else CLUMPED)
    if not clumped or labelled_share >= _WHOLLY_LABELLED:
        return "per_class"
    whole_parts = not from_vector and touching_share(reference) > _TOUCHING
    return "blocks" if whole_parts else "polygons"


# What the files leave open.


def _arrays(path: Path, variable: str | None, n_axes: int) -> list[Layer]:
    """Return the arrays of a .mat or .npy file that may be meant; opening says what is wrong."""
    kind = file_kind(path)
    arrays = stored_arrays(path, kind) if kind in _ARRAYS else []
    return [a for a in arrays if a.ndim == n_axes and variable in {None, a.name}]


def _first(what: str, arrays: list[Layer], why: str, option: str, notes: list[str]) -> str | None:
    """Return the name of the first array, with a note where there are others."""
    if len(arrays) > 1:
        others = ", ".join(array.name for array in arrays[1:])
        notes.append(
            f"The {what}: '{arrays[0].name}', {why}. For another one ({others}) change {option}."
        )
    return arrays[0].name or None if arrays else None


def _sides(array: Layer) -> list[tuple[int, ...]]:
    """Return the shape of a scene without its first, second and third axis."""
    shape = array.stored_shape
    return [shape[:axis] + shape[axis + 1 :] for axis in range(3)]


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
    path: Path,
    cube: xr.DataArray,
    options: dict[str, Any],
    align: Literal["exact", "nearest"] | None,
    notes: list[str],
) -> tuple[xr.DataArray, str | None]:
    """Return the labels on the grid of the scene, and how they had to be aligned."""
    if align is not None:
        return open_labels(path, like=cube, align=align, **options), align
    try:
        return open_labels(path, like=cube, **options), None
    except InputError as error:
        try:
            moved = open_labels(path, like=cube, align="nearest", **options)
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


# The configuration.

_TEMPLATE = """\
# {summary}.
# Written by 'hsreject init', to run as it is. Paths are those from the folder in which hsreject is
# started. 'hsreject config list' names all parts, 'hsreject config show auto' explains one.
{title}
# The same seed draws the same training pixels.
seed = 0

[goal]
# What the map must reach, rejecting no more than that takes: accuracy (of the kept pixels),
# max_error (the same, certified), rejection_cost (a wrong pixel costs 1) or fraction (to reject).
{goal}
[scene]
{about}
{scene}
# The classes, and how many pixels have them:
{classes}

{sampling}
[classifier]
# Makes its own features, and weighs what it tries by cross-validation on the training pixels.
name = "auto"

[context]
# Neighbours share a label unless the data object; cross-validation chooses how much that counts.
prior = "auto"

[[rejectors]]
# Rejects the pixels whose label is least certain after the context.
name = "sequential"

# Solves the context once for each operating point: much slower, sometimes better.
# [[rejectors]]
# name = "joint"
"""

_PER_CLASS = """\
[sampling]
# Training pixels of each class, drawn at random; the other labelled ones are for testing.
{sizes}
name = "per_class"
n_per_class = {n_per_class}
# Neighbours look alike, which flatters a map. To keep training and test pixels apart instead:
# name = "blocks"
# block_size = 16
"""

_BLOCKS = """\
[sampling]
# Square blocks are for training or for testing, and lie apart: neighbours look alike.
name = "blocks"
block_size = 16
fraction = 0.5
n_per_class = {n_per_class}
"""

_POLYGONS = """\
[sampling]
# Whole polygons are for training or for testing: pixels of one polygon look alike.
{sizes}
name = "polygons"
fraction = {fraction}
{thinned}"""

_OTHER = """\
[sampling]
name = "{sampling}"
"""


def _sampling(
    sampling: str, counts: list[_Count], reference: xr.DataArray, notes: list[str]
) -> str:
    """Return the section that says which pixels are for training."""
    typical = int(np.median([count.n_pixels for count in counts]))
    n_per_class = next(n for least, n in _SAMPLES if typical >= least)
    if sampling == "per_class":
        sizes = _comments(_sizes(counts, typical, n_per_class))
        return _PER_CLASS.format(sizes=sizes, n_per_class=n_per_class)
    if sampling == "blocks":
        return _BLOCKS.format(n_per_class=n_per_class)
    if sampling != "polygons":
        return _OTHER.format(sampling=sampling)
    numbers = polygon_numbers(reference)
    n_polygons = [len(np.unique(numbers[reference.values == c.value])) for c in counts]
    fraction = 1 if np.median(n_polygons) < _FEW_POLYGONS else 0.5
    lines = [f"The labels lie in {sum(n_polygons)} polygons."]
    single = [c.name for c, n in zip(counts, n_polygons, strict=True) if n == 1]
    if fraction == 1:
        lines += [
            f"A typical class has fewer than {_FEW_POLYGONS}, so all are for training: accuracy",
            "comes from leaving whole polygons out in turn. Five small polygons beat one large.",
        ]
    if single:
        lines.append(f"With a single polygon: {', '.join(single)}.")
    notes.append(f"{lines[0]} They are kept whole: [sampling] name = 'polygons'.")
    thinned = f"n_per_class = {_WITHIN_POLYGONS}\n" if typical > 2 * _WITHIN_POLYGONS else ""
    return _POLYGONS.format(sizes=_comments(lines), fraction=fraction, thinned=thinned)


def _class_lines(counts: list[_Count]) -> str:
    width = max(len(count.name) for count in counts)
    return _comments([f"{c.value:5d}  {c.name:{width}s}  {c.n_pixels:8d}" for c in counts])


def _sizes(counts: list[_Count], typical: int, n_per_class: int) -> Iterator[str]:
    """Yield what the sizes of the classes mean for the training pixels."""
    yield f"A typical class has {typical} pixels."
    small = [count.name for count in counts if 1 < count.n_pixels < 2 * n_per_class]
    single = [count.name for count in counts if count.n_pixels == 1]
    if small:
        yield f"Classes with fewer than twice as many give half: {', '.join(small)}."
    if single:
        yield f"Classes with a single pixel cannot be learned: {', '.join(single)}."


def _names(counts: list[_Count], names: Mapping[int, str] | Sequence[str] | None) -> str:
    """Return the line that names the classes, as a comment where they have no names."""
    if isinstance(names, Mapping):
        pairs = (f"{v} = {json.dumps(n, ensure_ascii=False)}" for v, n in names.items())
        return f"names = {{ {', '.join(pairs)} }}\n"
    if names:
        return f"names = {json.dumps(list(names), ensure_ascii=False)}\n"
    plain = [f"class {number}" for number in range(1, len(counts) + 1)]
    if [count.name for count in counts] != plain:
        return ""
    return f"# Say what they are: names = {json.dumps(plain)}\n"


def _place(cube: xr.DataArray) -> str:
    table = LookupTable.of(cube)
    if table is not None:
        return f"sensor geometry; maps are written with {table.grid}"
    return str(Grid.of(cube))


def _comments(lines: Iterable[str]) -> str:
    """Return lines as comments, in which a character that would end the line is a space."""
    printable = ("".join(c if c.isprintable() else " " for c in line) for line in lines)
    return "\n".join(f"# {line}" for line in printable)
