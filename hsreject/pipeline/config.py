"""A configuration as nested tables: reading TOML and applying settings."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import tomli_w

from hsreject.errors import ConfigError, FileError, shown
from hsreject.registry import nearest

Table = dict[str, Any]
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def read_document(path: str | PathLike[str]) -> Table:
    """Return the tables of a TOML file."""
    path = Path(path)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(
            f"There is no configuration file '{path}'. Check the path, or let 'hsreject init SCENE "
            "LABELS' write one."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            f"The configuration '{path}' cannot be read as text: {error}.{_did_you_mean(path)}"
        ) from None
    except (ValueError, RecursionError) as error:  # also of numbers without end
        raise ConfigError(
            f"The configuration '{path}' is not valid TOML: {error}.{_did_you_mean(path)}"
        ) from None


def _did_you_mean(path: Path) -> str:
    """Return the command for a user who gave a scene instead of its configuration."""
    if path.suffix.lower() == ".toml":
        return ""
    return f" If it is a scene, did you mean init? 'hsreject init {path} LABELS' writes one."


def with_settings(document: Mapping[str, Any], settings: Iterable[str]) -> Table:
    """Return a copy of `document` with settings such as ``features.mnf.n_components=30`` applied.

    The value is read as TOML where it is TOML and as text otherwise. A table in a list is
    addressed by its ``name`` or by its number from 0.
    """
    changed: Table = _own(document)
    for setting in settings:
        address, value = named_value(
            setting, "A setting must look like section.key=value, as in --set context.weight=4"
        )
        *steps, last = (step.strip() for step in address.split("."))
        place: Any = changed
        for step in steps:
            place = _step_into(place, step, setting)
        if not isinstance(place, dict) or not all((*steps, last)):
            raise ConfigError(
                f"The setting '{setting}' must end at the key of a table, as in --set "
                f"context.weight=4.{_tables(place, last)}"
            )
        place[last] = value
    return changed


def scene_name(document: Mapping[str, Any]) -> str:
    """Return the path of a configuration's scene, or its name."""
    scene = _plain(document.get("scene", ""))
    named = scene.get("path", scene.get("name", "")) if isinstance(scene, Mapping) else scene
    return " + ".join(map(str, named)) if isinstance(named, list) else str(named)


def config_text(document: Mapping[str, Any]) -> str:
    """Return a configuration as TOML; objects that stand for tables are shown as their repr."""
    return tomli_w.dumps(_plain(document))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, int | float | bool):
        return value
    if hasattr(value, "dims"):  # a DataArray; xarray takes long to import
        return f"<{value.name} in memory>"
    return shown(_ADDRESS.sub("", repr(value)))  # which differs from run to run


def named_value(setting: str, expected: str) -> tuple[str, object]:
    """Return name and value of a text such as ``accuracy=0.95``, or say what was expected."""
    name, equals, text = (part.strip() for part in setting.partition("="))
    if not equals or not name:
        raise ConfigError(f"{expected} (got '{setting}').")
    try:
        return name, tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return name, text


def _own(value: Any) -> Any:
    """Return copies of tables and lists; objects that stand for tables are shared."""
    if isinstance(value, Mapping):
        return {key: _own(entry) for key, entry in value.items()}
    return [_own(entry) for entry in value] if isinstance(value, list) else value


def _step_into(place: Any, step: str, setting: str) -> Any:
    """Return the table or list of that name in a table, or the table of that name in a list."""
    if isinstance(place, list):
        inside = next((t for i, t in enumerate(place) if step in {str(i), t.get("name")}), None)
    else:
        inside = place.setdefault(step, {})
    if not isinstance(inside, dict | list):
        raise ConfigError(
            f"The setting '{setting}' goes through '{step}', which is not a table there."
            f"{_tables(place, step)}"
        )
    return inside


def _tables(place: Any, step: str) -> str:
    """Return the tables of a list, by name or number, and the one that may be meant."""
    if not isinstance(place, list):
        return ""
    names = [str(table.get("name", index)) for index, table in enumerate(place)]
    return f" There are: {', '.join(names)}.{nearest(step, names)}"
