"""Parts by name: which there are, which options they take, and the object that a table describes.

A registry maps names to what a Python user would call. That constructor or function is the only
home of defaults: the registry reads its signature and never repeats it.
"""

from __future__ import annotations

import difflib
import inspect
import math
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hsreject.errors import ConfigError, InputError

T = TypeVar("T")


def nearest(word: str, candidates: Sequence[str]) -> str:
    """Return " Did you mean 'x'?" for the candidate nearest to `word`, or nothing."""
    close = difflib.get_close_matches(word, candidates, n=1)
    return f" Did you mean '{close[0]}'?" if close else ""


class Registry(Mapping[str, Callable[..., T]], Generic[T]):
    """A mapping from names to constructors or functions of one kind.

    Parameters
    ----------
    kind : str
        What the parts are, as error messages call them ("prior", "rejector").
    entries : mapping of str to callable
        The parts by name.
    supplied : sequence of str
        Parameters that are not options, because the caller of the function supplies them.

    Examples
    --------
    >>> from hsreject.registry import Registry
    >>> from fractions import Fraction
    >>> numbers = Registry("number", {"fraction": Fraction})
    >>> numbers.create("fraction", numerator=1, denominator=2)
    Fraction(1, 2)
    >>> numbers.create("fractoin")
    Traceback (most recent call last):
    hsreject.errors.ConfigError: Unknown number 'fractoin'. There are: fraction. Did you mean ...
    """

    def __init__(
        self, kind: str, entries: Mapping[str, Callable[..., T]], *, supplied: Sequence[str] = ()
    ) -> None:
        self.kind = kind
        self._entries = dict(entries)
        self._supplied = supplied

    def register(self, name: str, constructor: Callable[..., T]) -> None:
        """Add a part under a name that is still free, so that configurations can name it."""
        if name in self._entries:
            raise ConfigError(f"There is already a {self.kind} '{name}'. Choose another name.")
        self._entries[name] = constructor

    def forget(self, module: str) -> None:
        """Take out the parts that a module defines."""
        parts = self._entries.items()
        self._entries = {name: part for name, part in parts if part.__module__ != module}

    def create(self, name: str, /, **options: object) -> T:
        """Call the constructor registered as `name` with `options`."""
        return self.bind(name, **options)()

    def bind(self, name: str, /, **options: object) -> partial[T]:
        """Return the constructor or function registered as `name` with `options`, not called."""
        self._check_options(name, options)
        return partial(self[name], **options)

    def options(self, name: str) -> dict[str, inspect.Parameter]:
        """Return the parameters by name: what a configuration may set."""
        parameters = inspect.signature(self[name]).parameters
        return {key: value for key, value in parameters.items() if key not in self._supplied}

    def summary(self, name: str) -> str:
        """Return the first line of the part's docstring."""
        return (inspect.getdoc(self[name]) or "").partition("\n")[0]

    def _check_options(self, name: str, options: Mapping[str, Any]) -> None:
        accepted = self.options(name)
        for option in options:
            if option not in accepted:
                raise ConfigError(
                    f"Unknown option '{option}' for {self.kind} '{name}'. It takes: "
                    f"{', '.join(accepted) or 'no options'}.{nearest(option, list(accepted))}"
                )
        variadic = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        missing = [
            repr(option)
            for option, parameter in accepted.items()
            if parameter.default is inspect.Parameter.empty
            and parameter.kind not in variadic
            and option not in options
        ]
        if missing:
            raise ConfigError(f"The {self.kind} '{name}' needs a value for {', '.join(missing)}.")

    def __getitem__(self, name: str) -> Callable[..., T]:
        try:
            return self._entries[name]
        except KeyError:
            names = list(self._entries)
            raise ConfigError(
                f"Unknown {self.kind} '{name}'. There are: {', '.join(names)}."
                f"{nearest(str(name), names)}"
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def check_number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> float:
    """Return the value of an option if it is a number in the range; raise InputError otherwise."""
    number = as_float(value)
    inside = (
        math.isfinite(number)
        and (above is None or number > above)
        and (least is None or number >= least)
        and (most is None or number <= most)
        and (below is None or number < below)
    )
    if not inside:
        limits = {"above": above, "at least": least, "at most": most, "below": below}
        bounds = " and ".join(f"{word} {x:g}" for word, x in limits.items() if x is not None)
        in_percent = 1 in (most, below) and 1 < number <= 100
        hint = f" Write {number:g} % as {number / 100:g}." if in_percent else ""
        raise InputError(f"{name} must be a number {bounds} (got {value!r:.60}).{hint}")
    return number


def as_float(value: object) -> float:
    """Return a number as a float: infinite if it is beyond all floats, NaN if it is none at all."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def check_count(name: str, value: object, *, least: int) -> None:
    """Raise InputError unless the value of an option is a whole number from `least` on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be a whole number, at least {least} (got {value!r}).")


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise InputError unless the value of an option is among the choices."""
    if not isinstance(value, str) or value not in choices:
        hint = nearest(value, list(choices)) if isinstance(value, str) else ""
        raise InputError(f"{name} must be one of {', '.join(choices)} (got {value!r}).{hint}")


def build_part(registry: Registry[T], description: object, *, section: str) -> T:
    """Return the part that a name, or a table with a ``name`` and options, describes.

    Python users may give the part itself. Messages name the `section` of the configuration.
    """
    if not isinstance(description, str | Mapping):
        return description  # type: ignore[return-value]  # an object stands for itself
    part = bind_part(registry, description, section=section)
    with in_section(section):
        return part()


def bind_part(registry: Registry[T], description: object, *, section: str) -> Callable[..., T]:
    """Return what :func:`build_part` would call: the constructor or function with its options."""
    if isinstance(description, str):
        description = {"name": description}
    if not isinstance(description, Mapping):
        return description  # type: ignore[return-value]  # an object stands for itself
    options = {str(key): value for key, value in description.items() if key != "name"}
    name = description.get("name")
    if not isinstance(name, str):
        wrong = "needs a name" if name is None else f"name must be text (got {name!r})"
        raise ConfigError(f"[{section}] {wrong}. There are: {', '.join(registry)}.")
    with in_section(section):
        _check_types(registry, name, options)
        return registry.bind(name, **options)


@contextmanager
def in_section(section: str) -> Iterator[None]:
    """Say in which section of the configuration a wrong option is."""
    try:
        yield
    except (ConfigError, InputError) as error:
        raise ConfigError(f"[{section}] {error}" if section else str(error)) from None


def check_keys(table: Mapping[str, object], keys: Sequence[str], *, section: str) -> None:
    """Raise unless every key of `table` is known; the message names the nearest one that is."""
    for key in table:
        if key not in keys:
            where = f"in [{section}]" if section else "at the top of the configuration"
            raise ConfigError(
                f"Unknown key '{key}' {where}. There are: {', '.join(keys)}.{nearest(key, keys)}"
            )


def fits(value: object, annotation: Any) -> bool:
    """Tell whether a TOML value fits a type annotation; one that cannot be judged always fits."""
    origin = get_origin(annotation)
    if origin in {Union, types.UnionType}:
        return any(fits(value, choice) for choice in get_args(annotation))
    if origin is Literal:
        return value in get_args(annotation)
    if annotation not in {bool, int, float, str, type(None)}:
        return True
    if isinstance(value, bool):  # which Python takes for an int
        return annotation is bool
    return isinstance(value, int | float if annotation is float else annotation)


def _check_types(registry: Registry[Any], name: str, options: Mapping[str, object]) -> None:
    """Raise unless every option has the type that the annotation asks for."""
    part = registry[name]
    try:
        hints = get_type_hints(vars(part).get("__init__", part))
    except (NameError, TypeError):  # annotations that only a type checker can resolve
        return
    for option, value in options.items():
        if option in hints and not fits(value, hints[option]):
            raise ConfigError(
                f"The option '{option}' of {registry.kind} '{name}' must be "
                f"{_in_words(hints[option])} (got {value!r})."
            )


def _in_words(annotation: Any) -> str:
    """Return a type annotation as a reader of a configuration would say it."""
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    if get_origin(annotation) in {Union, types.UnionType}:
        choices = [choice for choice in get_args(annotation) if choice is not type(None)]
        return " or ".join(dict.fromkeys(_in_words(choice) for choice in choices))
    if get_origin(annotation) is Literal:
        return " or ".join(repr(choice) for choice in get_args(annotation))
    return words.get(annotation, getattr(annotation, "__name__", str(annotation)))
