"""A configuration as nested tables: reading TOML and applying settings."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from hsreject.errors import ConfigError, FileError
from hsreject.registry import nearest

Table = dict[str, Any]


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
    except tomllib.TOMLDecodeError as error:
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
        address, value = named_value(setting, "--set context.weight=4")
        steps = [step.strip() for step in address.split(".")]
        if not all(steps):
            raise _unnamed(setting, "--set context.weight=4")
        _set(changed, steps, value, setting)
    return changed


def named_value(setting: str, example: str) -> tuple[str, object]:
    """Return name and value of a text such as ``accuracy=0.95``."""
    name, equals, text = setting.partition("=")
    if not equals:
        raise _unnamed(setting, example)
    return name.strip(), _value(text.strip())


def _unnamed(setting: str, example: str) -> ConfigError:
    return ConfigError(
        f"A setting must look like section.key=value (got '{setting}'). For example: {example}."
    )


def _own(value: Any) -> Any:
    """Return copies of tables and lists; objects that stand for tables are shared."""
    if isinstance(value, Mapping):
        return {key: _own(entry) for key, entry in value.items()}
    return [_own(entry) for entry in value] if isinstance(value, list) else value


def _set(table: Table, steps: list[str], value: object, setting: str) -> None:
    place: Any = table
    for step in steps[:-1]:
        place = _step_into(place, step, setting)
    if isinstance(place, list):
        raise ConfigError(
            f"The setting '{setting}' ends at a list of tables. Name the table and then its key: "
            f"{_names(place)}."
        )
    place[steps[-1]] = value


def _step_into(place: Any, step: str, setting: str) -> Any:
    if isinstance(place, list):
        for index, table in enumerate(place):
            if step in {str(index), table.get("name")}:
                return table
        raise ConfigError(
            f"The setting '{setting}' names '{step}', which is not in that list. "
            f"There are: {_names(place)}.{nearest(step, [t.get('name', '') for t in place])}"
        )
    inside = place.setdefault(step, {})
    if not isinstance(inside, dict | list):
        raise ConfigError(
            f"The setting '{setting}' goes through '{step}', which is a value and not a table."
        )
    return inside


def _names(tables: list[Table]) -> str:
    return ", ".join(str(table.get("name", index)) for index, table in enumerate(tables))


def _value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
