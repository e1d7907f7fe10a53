"""One Dataset with everything a run found, and where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import tomli_w
import xarray as xr

from hsreject import __version__
from hsreject.fingerprint import fingerprint
from hsreject.pipeline.one_seed import SeedResult
from hsreject.pipeline.plan import Plan
from hsreject.pipeline.summary import SEED
from hsreject.schema import OPERATING_POINT

SYSTEM_OF_POINT = "system_of_point"
_REPORTED = ("numpy", "scipy", "scikit-learn", "xarray", "numba", "rasterio", "spectral")


def result_dataset(
    document: Mapping[str, Any],
    plan: Plan,
    results: Mapping[int, SeedResult],
    *,
    inputs: tuple[xr.DataArray, xr.DataArray],
) -> xr.Dataset:
    """Return the maps and operating points of the first seed and the summary of all.

    The attributes hold the configuration, versions, the seed and hashes of the inputs.
    """
    first = results[plan.seed]
    summary = xr.concat(
        [result.summary for result in results.values()], dim=xr.Variable(SEED, list(results))
    )
    attrs = {
        "title": plan.title,
        "configuration": config_text(document),
        "seed": plan.seed,
        "scene_hash": fingerprint(inputs[0]),
        "labels_hash": fingerprint(inputs[1]),
        **{f"version_{name}": text for name, text in versions().items()},
    }
    pieces = [first.maps, operating_points(first), summary]
    if first.tried is not None:
        pieces.append(first.tried.rename({name: f"tuning_{name}" for name in first.tried}))
        chosen = [str(r.tried["settings"].values[0]) for r in results.values() if r.tried]
        pieces.append(xr.Dataset({"chosen_settings": (SEED, chosen)}))
    return xr.Dataset(
        {name: array for piece in pieces for name, array in piece.data_vars.items()},
        coords={name: coord for piece in pieces for name, coord in piece.coords.items()},
        attrs=attrs,
    )


def operating_points(result: SeedResult) -> xr.Dataset:
    """Return the operating points of all systems, one after the other.

    `system_of_point` says whose a point is; figures that a system does not have are NaN. The
    accuracy of the same labels with nothing rejected is `accuracy_without_rejection` here, since
    `overall_accuracy` is that of a system in the summary.
    """
    pieces = [
        curve.drop_attrs().assign_coords(
            {SYSTEM_OF_POINT: (OPERATING_POINT, [name] * curve.sizes[OPERATING_POINT])}
        )
        for name, curve in result.curves.items()
    ]
    points = xr.concat(pieces, dim=OPERATING_POINT, data_vars="all", join="outer")
    return points.rename(overall_accuracy="accuracy_without_rejection")


def config_text(document: Mapping[str, Any]) -> str:
    """Return a configuration as TOML; objects that stand for tables are shown as they print."""
    return tomli_w.dumps(_plain(document))


def versions() -> dict[str, str]:
    """Return the versions of hsreject and of what its numbers depend on."""
    found = {"hsreject": __version__}
    for name in _REPORTED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, str | int | float | bool):
        return value
    return repr(value) if not isinstance(value, xr.DataArray) else f"<{value.name} in memory>"
