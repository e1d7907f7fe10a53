"""What a run leaves: one Dataset with everything it found, and a folder of files made from it."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
import xarray as xr

from hsreject import __version__
from hsreject.errors import FileError, HsrejectError, InputError
from hsreject.files import (
    MANIFEST,
    PARTIAL,
    alone_in,
    check_folder,
    complete_folder,
    is_empty,
    made_folder,
    reason,
    replacing,
)
from hsreject.io.maps import write_map
from hsreject.io.netcdf import write_dataset
from hsreject.measures.choosing import choose_point
from hsreject.measures.summary import accuracy_at, aurc
from hsreject.pipeline.plan import Plan
from hsreject.pipeline.promising import promise_attrs
from hsreject.plot.image_displays import INFRARED, FalseColorDisplay
from hsreject.progress import ProgressCallback
from hsreject.report.evaluation import evaluate
from hsreject.report.findings import errors_caught
from hsreject.report.run_report import (
    EXPLORER,
    SYSTEM_OF_POINT,
    VERSION,
    along,
    configuration,
    run_report,
    write_run_explorer,
)
from hsreject.schema import AT_FRACTION, BAND, CANDIDATE, OPERATING_POINT, REJECTOR, SEED, SYSTEM

QUOTED_FRACTIONS = (0.1, 0.2)
CONFIG = "config.toml"
STAGES = "stages"
TUNING = "tuning.csv"

_ENDS = ("", "_lower", "_upper")  # of a name: a number and its interval
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_REPORTED = ("numpy", "scipy", "scikit-learn", "xarray", "numba", "rasterio", "spectral")


@dataclass(frozen=True)
class System:
    """A row of the table: operating points (and maps), what it took, and how honest it is."""

    data: xr.Dataset
    seconds: float  # of all stages that it needs
    calibration_error: float  # of the probability of its labels; NaN where it has none
    at_points: xr.Dataset | None = None  # label and rejected (operating_point, y, x), if they vary


@dataclass(frozen=True)
class SeedResult:
    """What one seed gives."""

    maps: xr.Dataset  # everything on the grid of the scene; maps of rejectors along `rejector`
    curves: dict[str, xr.Dataset]  # operating points on the test pixels, by system
    summary: xr.Dataset  # the quoted figures, by system
    tried: xr.Dataset | None  # the candidates of the tuning, best first
    context_is_idle: bool  # its weight is 0, so that rejection is that of the classifier alone
    at_points: Mapping[str, xr.Dataset]  # maps of every operating point, where labels vary
    promise: xr.Dataset | None = None  # what can be promised of each rejector, dims (rejector,)


def result_dataset(
    plan: Plan, cube: xr.DataArray, results: Mapping[int, SeedResult], hashes: Mapping[str, str]
) -> xr.Dataset:
    """Return the maps and operating points of the first seed and the summary of all.

    The attributes hold the configuration, versions, the seed and hashes of the inputs.
    """
    first = results[plan.seed]
    colors = FalseColorDisplay.from_cube(cube, wavelengths=INFRARED).bands
    pieces = [
        first.maps,
        operating_points(first.curves),
        xr.concat([r.summary for r in results.values()], dim=xr.Variable(SEED, list(results))),
        cube.isel({BAND: list(colors)}).drop_attrs(deep=False).to_dataset(name="false_color"),
        xr.Dataset(
            {
                "context_is_idle": (SEED, [r.context_is_idle for r in results.values()]),
            }
        ),
    ]
    if first.tried is not None:
        pieces.append(first.tried.rename({name: f"tuning_{name}" for name in first.tried}))
        chosen = [str(r.tried["settings"].values[0]) for r in results.values() if r.tried]
        pieces.append(xr.Dataset({"chosen_settings": (SEED, chosen)}))
    words: dict[str, str] = {}
    if first.promise is not None:
        promises = [r.promise for r in results.values() if r.promise is not None]
        pieces.append(xr.concat(promises, dim=xr.Variable(SEED, list(results))))
        words = promise_attrs(pieces[-1], plan.promised_rejector)
    return xr.Dataset(
        {name: array for piece in pieces for name, array in piece.data_vars.items()},
        coords={name: coord for piece in pieces for name, coord in piece.coords.items()},
        attrs={
            "title": plan.title,
            "configuration": config_text(plan.document),
            "seed": plan.seed,
            "fraction": plan.fraction,
            **words,
            **hashes,
            **{f"{VERSION}{name}": text for name, text in _versions().items()},
        },
    )


def joined_maps(rejections: Mapping[str, xr.Dataset]) -> dict[str, xr.DataArray]:
    """Return the maps (rejector, y, x) of rejectors that gave maps and operating points."""
    maps = [data.drop_dims(OPERATING_POINT) for data in rejections.values()]
    along = xr.Variable(REJECTOR, list(rejections))
    joined = xr.concat(maps, dim=along, combine_attrs="drop_conflicts")
    meaning = [data["confidence"].attrs["long_name"] for data in rejections.values()]
    found = {str(name): joined[name] for name in joined.data_vars}
    return found | {"confidence_meaning": xr.DataArray(meaning, coords={REJECTOR: along})}


def operating_points(curves: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Return the operating points of all systems in one table; what a system lacks is NaN.

    The accuracy of a point's labels with nothing rejected is `accuracy_without_rejection` here,
    since `overall_accuracy` is that of a system in the summary.
    """
    pieces = [
        curve.drop_attrs().assign_coords(
            {SYSTEM_OF_POINT: (OPERATING_POINT, [name] * curve.sizes[OPERATING_POINT])}
        )
        for name, curve in curves.items()
    ]
    points = xr.concat(pieces, dim=OPERATING_POINT, data_vars="all", join="outer")
    return points.rename(overall_accuracy="accuracy_without_rejection")


def summarise(systems: Mapping[str, System], test: xr.DataArray) -> xr.Dataset:
    """Return the quoted figures of each system, dims (system,) and (system, at_fraction).

    A curve with one point (nothing rejected) has an overall accuracy and no more.
    """
    rows = [
        _row(along(system.data, OPERATING_POINT)).assign(
            {
                "calibration_error": system.calibration_error,
                "seconds": system.seconds,
                **_of_map(system.data, test),
            }
        )
        for system in systems.values()
    ]
    return xr.concat(rows, dim=xr.Variable(SYSTEM, list(systems)))


def _of_map(maps: xr.Dataset, test: xr.DataArray) -> dict[str, float]:
    """Return what is measured on the maps as delivered, with 95 % intervals."""
    found = evaluate(test, maps["label"], rejected=maps["rejected"])
    nothing, delivered = found.points
    point = delivered.point
    row = {
        "map_rejected_fraction": point.rejected_fraction,
        "map_errors_caught": errors_caught(point),
    }
    for name, named in (("overall", nothing), ("nonrejected", delivered)):
        ends = (named.point.nonrejected_accuracy, *found.interval(named))
        row |= {f"map_{name}_accuracy{e}": v for e, v in zip(_ENDS, ends, strict=True)}
    return row


def _row(curve: xr.Dataset) -> xr.Dataset:
    # the first point rejects nothing; where labels change from point to point, its labels count
    accuracy = "overall_accuracy" if "overall_accuracy" in curve else "nonrejected_accuracy"
    nothing = {
        "overall_accuracy": float(curve[accuracy][0]),
        "accuracy_at": (AT_FRACTION, np.full(len(QUOTED_FRACTIONS), np.nan)),
        "largest_quality": np.nan,
        "fraction_of_largest_quality": np.nan,
        "aurc": np.nan,
    }
    row = xr.Dataset(nothing, coords={AT_FRACTION: list(QUOTED_FRACTIONS)})
    if curve.sizes[OPERATING_POINT] == 1:
        return row
    best = choose_point(curve)
    fractions = curve["rejected_fraction"].values
    whole = fractions.min() == 0 and fractions.max() == 1
    return row.assign(
        accuracy_at=(AT_FRACTION, accuracy_at(curve, QUOTED_FRACTIONS).values),
        largest_quality=best.classification_quality,
        fraction_of_largest_quality=best.rejected_fraction,
        aurc=aurc(curve) if whole else np.nan,
    )


def config_text(document: Mapping[str, Any]) -> str:
    """Return a configuration as TOML; objects that stand for tables are shown as they print."""
    return tomli_w.dumps(_plain(document))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, xr.DataArray):
        return f"<{value.name} in memory>"
    return _ADDRESS.sub("", repr(value))  # which differs from run to run


def _versions() -> dict[str, str]:
    """Return the versions of hsreject and of what its numbers depend on."""
    return {"hsreject": __version__, **{name: version(name) for name in _REPORTED}}


@contextmanager
def run_folder(folder: Path, document: Mapping[str, Any], *, overwrite: bool) -> Iterator[None]:
    """Prepare the folder of a run, and remove it again if the run fails before its first stage.

    Without `overwrite`, a folder that holds other files or the results of another configuration is
    refused; one that another run is writing into is refused in any case.
    """
    made = not folder.exists()
    check_folder(folder, overwrite=True)
    if not overwrite:
        _check_own(folder, document)
    with made_folder(folder), alone_in(folder):
        try:
            _begin(folder, document)
            yield
        except HsrejectError:
            if made and not any((folder / STAGES).glob("*.nc")):
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _begin(folder: Path, document: Mapping[str, Any]) -> None:
    try:
        # what a killed run was writing
        for left in (*folder.glob(f"{PARTIAL}*"), *(folder / STAGES).rglob(f"{PARTIAL}*")):
            shutil.rmtree(left, ignore_errors=True)  # one may lie inside another
        if not (folder / CONFIG).exists():  # else it belongs to the maps that are there
            with replacing(folder / CONFIG, overwrite=False) as part:
                part.write_text(config_text(document), encoding="utf-8")
        (folder / STAGES).mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot write into the folder {folder}: {reason(error)}.") from error


def _check_own(folder: Path, document: Mapping[str, Any]) -> None:
    """Raise if a folder holds other people's files, or the results of another configuration."""
    if not folder.is_dir() or is_empty(folder):
        return
    remedy = "Choose another folder, or allow overwriting (--overwrite, in Python overwrite=True)"
    begun = {entry.name for entry in folder.iterdir()} <= {CONFIG}  # a run that was stopped at once
    if not begun and not ((folder / STAGES).is_dir() and (folder / CONFIG).is_file()):
        raise FileError(
            f"The folder {folder} holds files that were not made by a run of hsreject. {remedy}: "
            "they stay, but for those whose names the run needs."
        )
    if not (folder / MANIFEST).is_file():
        return  # a run that was stopped has left nothing but its stages
    try:
        before = tomllib.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # edited, perhaps
        before = {}
    if before != tomllib.loads(config_text(document)):
        raise FileError(
            f"The folder {folder} holds the results of another configuration. {remedy}: finished "
            "stages that both need are kept."
        )


def write_outputs(
    folder: Path,
    dataset: xr.Dataset,
    explored: tuple[xr.DataArray, Mapping[str, xr.Dataset]],
    *,
    progress: ProgressCallback,
) -> None:
    """Write everything; what an earlier run has left is replaced only when all is complete.

    What is `explored` is the scene, and maps at every operating point where labels vary.
    """
    progress("writing", 0, 4)
    with complete_folder(folder, overwrite=True) as work:
        _write_maps(dataset, work / "maps")
        progress("writing", 1, 4)
        write_dataset(dataset, work / "result.nc")
        for name, text in _tables(dataset).items():
            (work / name).write_text(text, encoding="utf-8")
        progress("writing", 2, 4)
        with suppress(InputError):  # such as confidences that are all equal: no page, but maps
            write_run_explorer(dataset, work, *explored)
        progress("writing", 3, 4)
        run_report(dataset, work, with_explorer=(work / EXPLORER).exists())
    progress("writing", 4, 4)


def _write_maps(dataset: xr.Dataset, folder: Path) -> None:
    folder.mkdir()
    for variable in {"reference", "train", "test", "label_probability"} & set(dataset):
        write_map(dataset[variable], folder / f"{variable}.tif")
    for name in dataset[REJECTOR].values:
        chosen = dataset.sel({REJECTOR: name}, drop=True)
        for variable in ("label", "label_with_rejection", "confidence"):
            write_map(chosen[variable], folder / f"{variable}_{name}.tif")


def _tables(dataset: xr.Dataset) -> dict[str, str]:
    """Return the text files: tables, configuration and versions."""
    points = along(dataset, OPERATING_POINT).to_dataframe()
    texts = {
        CONFIG: configuration(dataset),
        "versions.toml": tomli_w.dumps(_versions()),
        "operating_points.csv": points.to_csv(index_label=OPERATING_POINT),
        "summary.csv": along(dataset, SYSTEM).to_dataframe().to_csv(),
    }
    if CANDIDATE in dataset.dims:
        tried = along(dataset, CANDIDATE).to_dataframe()
        texts[TUNING] = tried.rename(columns=lambda name: name.removeprefix("tuning_")).to_csv()
    return texts
