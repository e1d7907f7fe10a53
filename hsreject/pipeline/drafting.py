"""A first configuration for files of one's own: what ``hsreject init`` writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tomli_w
import xarray as xr
from numpy.typing import NDArray

from hsreject.errors import InputError
from hsreject.files import existing, reading
from hsreject.io.arrays import StoredArray, stored_arrays
from hsreject.io.grid import Grid, LookupTable
from hsreject.io.labels import open_labels
from hsreject.io.products.remote import existing_scene
from hsreject.io.scene import Kind, file_kind, open_scene
from hsreject.io.vector import is_known, read_columns
from hsreject.schema import BAND, X, Y, class_table

_ARRAYS = {Kind.NUMPY, Kind.MATLAB, Kind.MATLAB_HDF5}
_CLASS_ATTRIBUTES = (  # what people call it, likeliest first
    "class", "class_name", "classname", "land_cover", "landcover", "lulc", "lc", "cover", "label",
    "labels", "category", "crop", "species", "type", "class_id", "classid", "code", "name",
)  # fmt: skip
_MOST_CLASSES = 255
_SAMPLES = ((2500, 50), (500, 25), (0, 10))
"""How many training pixels per class, by the size of a typical class."""

_MANY_PIXELS = 300_000
"""From here on joint rejection takes minutes for each of its operating points."""


@dataclass(frozen=True)
class Draft:
    """A configuration as text, and what whoever asked for it should know."""

    text: str
    summary: str
    notes: tuple[str, ...]  # what was decided or may surprise


class _Count(NamedTuple):
    value: int
    name: str
    n_pixels: int


def draft_configuration(
    scene: Path,
    labels: Path,
    *,
    variable: str | None = None,
    labels_variable: str | None = None,
    attribute: str | None = None,
    band_axis: int | None = None,
) -> Draft:
    """Look at a scene and its labels, and return a configuration that runs as it is.

    Options that are not given are decided where a file leaves a choice, and the notes say so.
    """
    notes: list[str] = []
    scene = existing_scene(scene)
    stored = _scene_array(scene, variable, notes)
    if stored is not None:
        variable = stored.name or None
    on_disk = _label_array(existing(labels), labels_variable, stored, notes)
    if on_disk is not None:
        labels_variable = on_disk.name or None
    if band_axis is None and stored is not None and on_disk is not None:
        axes = [axis for axis in range(3) if _without(stored.shape, axis) == on_disk.shape]
        band_axis = axes[0] if len(axes) == 1 else None
    if attribute is None and file_kind(labels) is Kind.VECTOR:
        attribute = _class_attribute(labels, labels_variable, notes)
    cube = open_scene(scene, chunks="auto", variable=variable, band_axis=band_axis)
    if cube.sizes[BAND] < 2:
        raise InputError(
            f"{scene} has one band, which is not a scene. Give the scene first and then its "
            "labels: hsreject init SCENE LABELS."
        )
    reference, align = _aligned(labels, cube, attribute, labels_variable, notes)
    counts = _counts(reference, labels)
    notes += [*cube.attrs.get("guesses", ()), *reference.attrs.get("guesses", ())]
    table = {
        "name": "files",
        "path": str(scene),
        "variable": variable,
        "band_axis": band_axis,
        "labels": str(labels),
        "labels_variable": labels_variable,
        "attribute": attribute,
        "align": align,
    }
    given = {key: value for key, value in table.items() if value is not None}
    n_labelled = sum(count.n_pixels for count in counts)
    summary = (
        f"{cube.sizes[Y]} rows x {cube.sizes[X]} columns x {cube.sizes[BAND]} bands; "
        f"{len(counts)} classes in {n_labelled} labelled pixels"
    )
    text = _filled_in(scene.stem, given, counts, cube, summary, notes)
    return Draft(text, summary, tuple(notes))


# What the files leave open.


def _scene_array(path: Path, variable: str | None, notes: list[str]) -> StoredArray | None:
    """Return the array of a .mat or .npy file that is the scene: the one given, or the largest."""
    if file_kind(path) not in _ARRAYS:
        return None
    arrays = [array for array in stored_arrays(path, file_kind(path)) if array.ndim == 3]
    named = [array for array in arrays if variable in {None, array.name}]
    if not named:
        return None  # opening the file will say what is wrong
    chosen = max(named, key=lambda array: int(np.prod(array.shape)))
    if len(named) > 1:
        notes.append(_choice("scene", chosen.name, named, "the largest array", "variable"))
    return chosen


def _label_array(
    path: Path, variable: str | None, scene: StoredArray | None, notes: list[str]
) -> StoredArray | None:
    """Return the array that holds the labels: the one given, or the first of the scene's size."""
    if file_kind(path) not in _ARRAYS:
        return None
    arrays = [array for array in stored_arrays(path, file_kind(path)) if array.ndim == 2]
    named = [array for array in arrays if variable in {None, array.name}]
    if scene is not None:
        sides = {_without(scene.shape, axis) for axis in range(3)}
        named = [array for array in named if array.shape in sides] or named
    if not named:
        return None
    if len(named) > 1:
        others = "the first array of the size of the scene"
        notes.append(_choice("labels", named[0].name, named, others, "labels_variable"))
    return named[0]


def _choice(what: str, name: str, arrays: list[StoredArray], why: str, option: str) -> str:
    others = ", ".join(array.name for array in arrays if array.name != name)
    return f"The {what}: '{name}', {why}. For another one ({others}) change {option}."


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _class_attribute(path: Path, layer: str | None, notes: list[str]) -> str:
    """Return the attribute that most likely holds the class, and note the others."""
    with reading(path):
        _, columns, _ = read_columns(path, layer=layer)
    possible = [name for name, values in columns.items() if _may_be_classes(values)]
    if not possible:
        raise InputError(
            f"No attribute of {path} looks like classes: names or whole numbers that several "
            f"features share. It has: {', '.join(columns) or 'none'}. Choose one with --attribute."
        )

    def rank(name: str) -> tuple[int, bool]:
        known = name.lower() in _CLASS_ATTRIBUTES
        place = _CLASS_ATTRIBUTES.index(name.lower()) if known else len(_CLASS_ATTRIBUTES)
        return place, columns[name].dtype.kind != "O"  # names before numbers

    chosen = min(possible, key=rank)
    others = [name for name in possible if name != chosen]
    if others:
        notes.append(
            f"The classes: attribute '{chosen}'. For another one ({', '.join(others)}) change "
            "attribute."
        )
    return chosen


def _may_be_classes(values: NDArray[Any]) -> bool:
    """Tell whether a column holds few whole numbers or texts, most of them more than once."""
    known = [value for value in values.tolist() if is_known(value)]
    if not known or not all(isinstance(value, str | int | float) for value in known):
        return False
    if any(isinstance(value, float) and not value.is_integer() for value in known):
        return False
    n_classes = len(set(known))
    return 2 <= n_classes <= _MOST_CLASSES and (2 * n_classes <= len(known) or len(known) < 20)


def _aligned(
    path: Path, cube: xr.DataArray, attribute: str | None, variable: str | None, notes: list[str]
) -> tuple[xr.DataArray, str | None]:
    """Return the labels on the grid of the scene, and how they had to be aligned."""
    try:
        return open_labels(path, like=cube, attribute=attribute, variable=variable), None
    except InputError as error:
        try:
            moved = open_labels(
                path, like=cube, attribute=attribute, variable=variable, align="nearest"
            )
        except InputError:
            raise error from None
    notes.append("The labels lie on another grid: they are brought onto that of the scene.")
    return moved, "nearest"


def _counts(reference: xr.DataArray, path: Path) -> list[_Count]:
    """Return the classes that have pixels, or say why nothing can be learned from them."""
    classes = class_table(reference)
    numbers = np.bincount(reference.values.ravel(), minlength=max(classes.values, default=0) + 1)
    counts = [
        _Count(value, name, int(numbers[value]))
        for value, name in zip(classes.values, classes.names, strict=True)
        if numbers[value]
    ]
    if sum(count.n_pixels > 1 for count in counts) < 2:
        found = ", ".join(f"{c.name}: {c.n_pixels}" for c in counts) or "no labelled pixel"
        raise InputError(
            f"{path} has fewer than two classes with at least two pixels on the scene ({found}). "
            "Label more, or choose another attribute or array of it."
        )
    return counts


# The configuration.

_TEMPLATE = """\
# {summary}.
# Written by 'hsreject init', to run as it is. Paths are those from the folder in which hsreject is
# started. 'hsreject config list' names all parts, 'hsreject config show auto' explains one.
{title}
# Which part of the pixels the reject maps reject; the report says what other fractions would bring.
fraction = 0.1

# The same seed draws the same training pixels. n_seeds = 10 runs ten of them: mean and spread.
seed = 0

# A map that is no better than one that knows the place alone may owe its accuracy to the place.
baselines = ["coordinates"]

[scene]
{about}
{scene}
# The classes, and how many pixels have them:
{classes}

[sampling]
# Training pixels of each class, drawn at random; the other labelled ones are for testing.
{sizes}
name = "per_class"
n_per_class = {n_per_class}
# Neighbours look alike, which flatters a map. To keep training and test pixels apart instead:
# name = "blocks"
# block_size = 16

[classifier]
# Makes its own features, and weighs what it tries by cross-validation on the training pixels.
name = "auto"

[context]
# Neighbours share a label unless the data object; cross-validation chooses how much that counts.
prior = "auto"

[[rejectors]]
# Rejects the pixels whose label is least sure after the context.
name = "sequential"

{joint}

[promise]
# At most so many of the kept pixels are wrong, with this confidence: certified on one half of the
# test pixels, evaluated on the other.
max_error = 0.05
confidence_level = 0.9
"""

_JOINT = """\
[[rejectors]]
# Solves the context once for each operating point: slower, sometimes better.
name = "joint"\
"""

_JOINT_IS_SLOW = """\
# Solves the context once for each operating point, which takes long on so many pixels.
# [[rejectors]]
# name = "joint"\
"""


def _filled_in(
    title: str,
    scene: dict[str, Any],
    counts: list[_Count],
    cube: xr.DataArray,
    summary: str,
    notes: list[str],
) -> str:
    """Return the configuration."""
    width = max(len(count.name) for count in counts)
    typical = int(np.median([count.n_pixels for count in counts]))
    n_per_class = next(n for least, n in _SAMPLES if typical >= least)
    return _TEMPLATE.format(
        summary=summary,
        title=tomli_w.dumps({"title": title}),
        about=_comments([f"Place: {_place(cube)}.", *notes]),
        scene=tomli_w.dumps(scene) + _names(counts),
        classes=_comments([f"{c.value:5d}  {c.name:{width}s}  {c.n_pixels:8d}" for c in counts]),
        sizes=_comments(_sizes(counts, typical, n_per_class)),
        n_per_class=n_per_class,
        joint=_JOINT_IS_SLOW if cube.sizes[Y] * cube.sizes[X] > _MANY_PIXELS else _JOINT,
    )


def _sizes(counts: list[_Count], typical: int, n_per_class: int) -> Iterator[str]:
    """Yield what the sizes of the classes mean for the training pixels."""
    yield f"A typical class has {typical} pixels."
    small = [count.name for count in counts if 1 < count.n_pixels < 2 * n_per_class]
    single = [count.name for count in counts if count.n_pixels == 1]
    if small:
        yield f"Classes with fewer than twice as many give half: {', '.join(small)}."
    if single:
        yield f"Classes with a single pixel cannot be learned: {', '.join(single)}."


def _names(counts: list[_Count]) -> str:
    """Return the line that would name classes that have none, as a comment."""
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
