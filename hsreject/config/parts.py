"""From a table of a configuration to the object it names, with every mistake explained."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hsreject.errors import ConfigError, InputError
from hsreject.registry import Registry, nearest

T = TypeVar("T")

_ACCEPTED: dict[Any, tuple[type, ...]] = {
    bool: (bool,),
    int: (int,),
    float: (int, float),
    str: (str,),
    type(None): (type(None),),
}


def build_part(registry: Registry[T], given: object, *, section: str) -> T:
    """Return the part that `given` describes.

    Parameters
    ----------
    registry : Registry
        Where the part's name is looked up.
    given : str, mapping or object
        A name, a table with a ``name`` and the constructor's options, or the part itself, which
        Python users may put in place of a table.
    section : str
        Where it stands in the configuration, for messages.
    """
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping):
        return given  # type: ignore[return-value]  # an object stands for itself
    options = {str(key): value for key, value in given.items() if key != "name"}
    name = given.get("name")
    if not isinstance(name, str):
        raise ConfigError(
            f"[{section}] needs a name. There are: {', '.join(registry)}."
            if name is None
            else f"[{section}] name must be text (got {name!r}). There are: {', '.join(registry)}."
        )
    try:
        registry[name]
        check_types(registry, name, options)
        return registry.create(name, **options)
    except (ConfigError, InputError) as error:
        raise ConfigError(f"[{section}] {error}") from None


def check_types(registry: Registry[Any], name: str, options: Mapping[str, object]) -> None:
    """Raise unless every option has the type that the constructor's annotation asks for."""
    constructor = registry[name]
    try:
        hints = get_type_hints(vars(constructor).get("__init__", constructor))
    except (NameError, TypeError):  # annotations that only a type checker can resolve
        return
    for option, value in options.items():
        if option in hints and not fits(value, hints[option]):
            raise ConfigError(
                f"The option '{option}' of {registry.kind} '{name}' must be {spell(hints[option])} "
                f"(got {value!r})."
            )


def check_keys(table: Mapping[str, object], known: Sequence[str], *, section: str) -> None:
    """Raise unless every key of `table` is known; the message names the nearest one that is."""
    for key in table:
        if key not in known:
            where = f"in [{section}]" if section else "at the top of the configuration"
            raise ConfigError(
                f"Unknown key '{key}' {where}. There are: {', '.join(known)}."
                f"{nearest(key, list(known))}"
            )


def fits(value: object, annotation: Any) -> bool:
    """Tell whether a TOML value fits a type annotation; annotations it cannot judge always fit.

    Examples
    --------
    >>> fits(4, float), fits("4", float), fits("rbf", Literal["rbf", "linear"])
    (True, False, True)
    """
    origin = get_origin(annotation)
    if origin in {Union, types.UnionType}:
        return any(fits(value, choice) for choice in get_args(annotation))
    if origin is Literal:
        return value in get_args(annotation)
    accepted = _ACCEPTED.get(annotation)
    return accepted is None or (
        isinstance(value, accepted) and isinstance(value, bool) <= (annotation is bool)
    )


def spell(annotation: Any) -> str:
    """Return a type annotation in words.

    Examples
    --------
    >>> spell(Union[int, None]), spell(Literal["rbf", "linear"])
    ('a whole number', "'rbf' or 'linear'")
    """
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    if get_origin(annotation) in {Union, types.UnionType}:
        choices = [choice for choice in get_args(annotation) if choice is not type(None)]
        return " or ".join(dict.fromkeys(spell(choice) for choice in choices))
    if get_origin(annotation) is Literal:
        return " or ".join(repr(choice) for choice in get_args(annotation))
    return words.get(annotation, getattr(annotation, "__name__", str(annotation)))
