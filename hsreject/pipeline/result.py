"""What a run leaves: a tree with all results, and a folder of files made from it."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from hsreject.errors import FileError, HsrejectError
from hsreject.evaluation.tables import write_by_class, write_tables
from hsreject.files import (
    MANIFEST,
    PARTIAL,
    check_folder,
    complete_folder,
    folder_lock,
    is_empty,
    made_folder,
    reason,
    replacing,
)
from hsreject.handover.filled_map import FILLED, filled_map, filled_raster
from hsreject.handover.provenance import Provenance, write_map_item
from hsreject.io.maps import write_map, write_maps
from hsreject.io.netcdf import write_tree
from hsreject.pipeline.config import config_text, scene_name
from hsreject.pipeline.run_report import run_report, versions
from hsreject.pipeline.stages import STAGES
from hsreject.plot.image_displays import INFRARED, FalseColorDisplay
from hsreject.progress import ProgressCallback
from hsreject.rejection.ranking import UNKNOWN, flat_map, levels_as_field
from hsreject.schema import (
    BAND,
    CANDIDATE,
    CONFIDENCE_CLASS,
    LABEL_WITH_REJECTION,
    LEVEL_CONFIDENCE,
    OPERATING_POINT,
    REJECTOR,
    SEED,
    SYSTEM,
)
from hsreject.schema.class_tree import GROUPS_ATTRIBUTE

if TYPE_CHECKING:
    from hsreject.pipeline.judgement import Judgement

CONFIG = "config.toml"
SYSTEM_OF_POINT = "system_of_point"
MAP = "map.tif"

_TABLES = {  # files of tables, by the groups of a result that hold them
    "operating_points.csv": "points",
    "summary.csv": "summary",
    "confidence_classes.csv": "confidence_classes",
    "tuning.csv": "tuning",
}
_ITEM = {  # the files that the STAC item of a run names
    "map": f"maps/{MAP}",
    "filled": f"maps/{FILLED}",
    "confidence_classes": "maps/confidence_classes.tif",
    "report": "report.html",
    "certificate": "certificate.json",
    "configuration": CONFIG,
}
_OF_SYSTEMS = ("gain", "gain_lower", "gain_upper", "goal_reached")  # of no map by itself


def result_tree(judgement: Judgement, hashes: Mapping[str, str]) -> xr.DataTree:
    """Return the maps, operating points and tables of a run.

    The attributes hold the configuration, the seed and hashes of the inputs.
    """
    outcome, delivery = judgement.outcome, judgement.delivered.delivery
    colors = FalseColorDisplay.from_cube(outcome.cube, wavelengths=INFRARED).bands
    evidence = outcome.evidence.drop_dims(BAND, errors="ignore").drop_attrs(deep=False)
    maps = evidence.drop_dims(CANDIDATE, errors="ignore").assign(outcome.split)
    maps = maps.assign(
        {
            "reference": outcome.labels,
            "false_color": outcome.cube.isel({BAND: list(colors)}).drop_attrs(deep=False),
            **_maps_of_rejectors(judgement),
        }
    )
    seed = {SEED: [outcome.plan.seed]}
    groups = {
        "/": maps.assign_attrs(
            title=outcome.plan.title,
            configuration=judgement.configuration,
            seed=outcome.plan.seed,
            fraction=delivery.rejected_share,
            **hashes,
        ),
        "/delivered": _delivered(judgement),
        **{f"/{name}": one.expand_dims(seed) for name, one in judgement.tables.items()},
        "/pool": outcome.pool,
        "/tuning": outcome.tuning,
        "/versions": xr.Dataset(attrs=versions()),
    }
    if judgement.confidence_table is not None:
        groups["/confidence_classes"] = judgement.confidence_table
    if judgement.evaluation is not None:
        groups["/points"] = _operating_points(judgement)
    if delivery.certificate is not None:
        text = delivery.certificate.to_json()
        groups["/promise"].attrs = {"certificate": text, **judgement.promise}
    return xr.DataTree.from_dict({name: one for name, one in groups.items() if one.attrs or one})


def _maps_of_rejectors(judgement: Judgement) -> dict[str, xr.DataArray]:
    """Return the maps (rejector, y, x) of all rejectors, each at its operating point."""
    names = list(judgement.outcome.plan.rejectors)
    systems = [judgement.outcome.systems[name] for name in names]
    along = xr.Variable(REJECTOR, names)
    pieces = [system.delivery.maps.drop_attrs(deep=False) for system in systems]
    stack = xr.concat(pieces, dim=along, combine_attrs="drop_conflicts")
    for system in systems:  # its table holds the classes of all others, and the groups
        if system.ranking.tree is not None:
            stack[LABEL_WITH_REJECTION].attrs = system.delivery.maps[LABEL_WITH_REJECTION].attrs
    meaning = [one.ranking.meaning for one in systems]
    return {
        **{str(name): stack[name] for name in stack.data_vars},
        "confidence_meaning": xr.DataArray(meaning, coords={REJECTOR: along}),
        "has_threshold": xr.DataArray([one.has_threshold for one in systems], dims=REJECTOR),
    }


def _delivered(judgement: Judgement) -> xr.Dataset:
    """Return the delivered map, its numbers, and what is said of it."""
    outcome, delivery = judgement.outcome, judgement.delivered.delivery
    rejector, goal = outcome.plan.delivered, outcome.plan.goal
    numbers = {"threshold": delivery.threshold, "rejected_share_of_scene": delivery.rejected_share}
    if judgement.evaluation is not None:
        row = judgement.tables["judged"].sel({SYSTEM: rejector}, drop=True)
        numbers |= {str(column): row[column].item() for column in row}
        numbers = {name: number for name, number in numbers.items() if name not in _OF_SYSTEMS}
    elif outcome.left_out is not None:
        numbers["left_out_accuracy"] = outcome.left_out.accuracy
        numbers["left_out_standard_error"] = outcome.left_out.standard_error
    maps = {LABEL_WITH_REJECTION: delivery.maps[LABEL_WITH_REJECTION]}
    if judgement.confidence_classes is not None:
        maps[CONFIDENCE_CLASS] = judgement.confidence_classes
    return xr.Dataset(
        {name: one.drop_vars(REJECTOR, errors="ignore") for name, one in maps.items()} | numbers,
        attrs={
            "rejector": rejector,
            "goal": goal.kind,
            "goal_value": goal.value,
            "goal_reached": int(delivery.reached),
            "statement": judgement.statement,
            "warnings": list(judgement.warnings) or "",
            "notes": list(judgement.notes) or "",
        },
    )


def _operating_points(judgement: Judgement) -> xr.Dataset:
    """Return the operating points of all systems in one table; what a system lacks is NaN."""
    pieces = []
    for name, system in judgement.outcome.systems.items():
        points = system.points.drop_attrs().reset_coords(drop=True)
        names = [name] * points.sizes[OPERATING_POINT]
        pieces.append(points.assign_coords({SYSTEM_OF_POINT: (OPERATING_POINT, names)}))
    return xr.concat(pieces, dim=OPERATING_POINT, data_vars="all", join="outer")


@contextmanager
def run_folder(folder: Path, document: Mapping[str, Any], *, overwrite: bool) -> Iterator[None]:
    """Prepare the folder of a run, and remove it again if the run fails before its first stage.

    Without `overwrite`, a folder that holds other files or the results of another configuration is
    refused; one that another run is writing into is refused in any case.
    """
    is_new = not folder.exists()
    check_folder(folder, overwrite=True)
    if not (overwrite or is_new or is_empty(folder)):
        _check_own(folder, document)
    with made_folder(folder), folder_lock(folder):
        try:
            _begin(folder, document)
            yield
        except HsrejectError:
            if is_new and not any((folder / STAGES).glob("*.nc")):
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
    remedy = "Choose another folder, or allow overwriting (--overwrite, in Python overwrite=True)"
    names = {entry.name for entry in folder.iterdir()}
    if names != {CONFIG} and not {STAGES, CONFIG} <= names:  # CONFIG alone: stopped at once
        raise FileError(
            f"The folder {folder} holds files that were not made by a run of hsreject. {remedy}: "
            "they stay, except those whose names the run needs."
        )
    if MANIFEST not in names:
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
    tree: xr.DataTree,
    judgement: Judgement,
    *,
    flat: bool,
    probabilities: bool,
    progress: ProgressCallback,
) -> None:
    """Write everything; what an earlier run has left is replaced only when all is complete."""
    progress("writing", 0, 3)
    with complete_folder(folder, overwrite=True) as work:
        source = _source(judgement)
        label = _write_maps(tree, work / "maps", source, flat=flat)
        if probabilities:
            write_map(tree.to_dataset()["probability"], work / "maps" / "probabilities.tif")
        for name, system in judgement.outcome.systems.items():
            if system.ranking.tree is not None:
                levels = levels_as_field(system.ranking.confidence)
                write_map(levels, work / "maps" / f"{LEVEL_CONFIDENCE}_{name}.tif")
        ranking, delivery = judgement.delivered.ranking, judgement.delivered.delivery
        if ranking.unknown is not None:  # those who certify a map must know
            flag = ranking.at(delivery.decision.threshold)["flag"]
            write_map(flag, work / "maps" / "flag.tif")
        progress("writing", 1, 3)
        write_tree(tree, work / "result.nc")
        for name, text in _texts(tree).items():
            (work / name).write_text(text, encoding="utf-8")
        if judgement.evaluation is None:
            write_by_class(judgement.areas, work / "areas.csv")
        else:
            write_tables(judgement.evaluation, work)
        progress("writing", 2, 3)
        run_report(judgement, work)
        write_map_item(work, label, source, _ITEM)
    progress("writing", 3, 3)


def _write_maps(tree: xr.DataTree, folder: Path, source: Provenance, *, flat: bool) -> xr.DataArray:
    """Write all maps, and return the delivered one."""
    folder.mkdir()
    maps, delivered = tree.to_dataset(), _table(tree, "delivered")
    of_delivered = maps.sel({REJECTOR: delivered.attrs["rejector"]}, drop=True)
    grouped = delivered[LABEL_WITH_REJECTION]
    answer = grouped.assign_coords(of_delivered["label"].coords)  # the place is kept once
    if flat and GROUPS_ATTRIBUTE in answer.attrs:
        answer = flat_map(answer)
    filled = filled_map(
        of_delivered["label"],
        of_delivered["rejected"],
        group=of_delivered[LABEL_WITH_REJECTION] != of_delivered["label"],  # or rejected
        probability=maps.get("hidden_field", maps["probability"]),
        label_probability=maps.get("label_probability"),
        unknown=of_delivered.get(UNKNOWN),
    )
    tags = source.tags(answer)
    write_maps({folder / MAP: answer, folder / FILLED: filled_raster(filled)}, tags=tags)
    if CONFIDENCE_CLASS in delivered:
        level = delivered[CONFIDENCE_CLASS].assign_coords(answer.coords)
        write_maps({folder / "confidence_classes.tif": level}, tags=tags)
    for variable in ("reference", "train", "test", "calibration", "label_probability"):
        if variable in maps:
            write_map(maps[variable], folder / f"{variable}.tif")
    for name in maps[REJECTOR].values:
        variables = ["label", "confidence"]
        # that of the delivered map is `MAP`, unless that one leaves out its groups
        if name != delivered.attrs["rejector"] or (flat and GROUPS_ATTRIBUTE in grouped.attrs):
            variables.append(LABEL_WITH_REJECTION)
        for variable in variables:
            one = maps[variable].sel({REJECTOR: name}, drop=True)
            write_map(one, folder / f"{variable}_{name}.tif")
    return answer


def _source(judgement: Judgement) -> Provenance:
    """Return what the delivered map was made from and for."""
    plan, name = judgement.outcome.plan, scene_name(judgement.outcome.document)
    goal = f"{plan.goal.kind} = {plan.goal.value:g}"
    return Provenance(name, plan.title, goal, judgement.statement)


def _table(tree: xr.DataTree, name: str) -> xr.Dataset:
    """Return a group of a result as a table by itself."""
    return tree.children[name].to_dataset(inherit=False)


def _texts(tree: xr.DataTree) -> dict[str, str]:
    """Return the text files: configuration, tables and certificate."""
    texts = {CONFIG: str(tree.attrs["configuration"])}
    for file, name in _TABLES.items():
        if name in tree:
            table = _table(tree, name)
            if name == "summary":
                judged = _table(tree, "judged")
                table = table.assign(judged.rename({column: f"map_{column}" for column in judged}))
            texts[file] = table.to_dataframe().to_csv()
    if "promise" in tree:
        texts["certificate.json"] = tree.children["promise"].attrs["certificate"]
    return texts
