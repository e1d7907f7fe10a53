"""Registries: the parts that a configuration or a command line may name.

A registry maps names to the constructors that a Python user would call. The constructor is the only
home of defaults: the registry reads its signature and never repeats it.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Collection, Iterator, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hsreject.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def nearest(word: str, candidates: list[str]) -> str:
    """Return " Did you mean 'x'?" for the candidate nearest to `word`, or nothing.

    Examples
    --------
    >>> nearest("wieght", ["weight", "edge_weight"])
    " Did you mean 'weight'?"
    """
    close = difflib.get_close_matches(word, candidates, n=1)
    return f" Did you mean '{close[0]}'?" if close else ""


class Registry(Mapping[str, "Callable[..., T]"], Generic[T]):
    """A read-mostly mapping from names to constructors of one kind of part.

    Parameters
    ----------
    kind : str
        What the parts are, as error messages call them ("prior", "rejector").
    entries : mapping of str to callable
        The parts that come with hsreject.

    Examples
    --------
    >>> from fractions import Fraction
    >>> numbers = Registry("number", {"fraction": Fraction})
    >>> numbers.create("fraction", numerator=1, denominator=2)
    Fraction(1, 2)
    >>> numbers.create("fractoin")
    Traceback (most recent call last):
    hsreject.errors.ConfigError: Unknown number 'fractoin'. There are: fraction. Did you mean ...
    """

    def __init__(self, kind: str, entries: Mapping[str, Callable[..., T]]) -> None:
        self.kind = kind
        self._entries = dict(entries)

    def register(self, name: str, constructor: Callable[..., T]) -> None:
        """Add a part under a name that is still free."""
        if name in self._entries:
            raise ConfigError(
                f"There is already a {self.kind} named '{name}'. Choose another name for it."
            )
        self._entries[name] = constructor

    def create(self, name: str, /, **options: object) -> T:
        """Call the constructor registered as `name` with `options`."""
        constructor = self[name]
        self._check_options(name, options)
        return constructor(**options)

    def options(self, name: str) -> dict[str, inspect.Parameter]:
        """Return the constructor's parameters by name: what a configuration may set."""
        return dict(inspect.signature(self[name]).parameters)

    def summary(self, name: str) -> str:
        """Return the first line of the part's docstring."""
        return (inspect.getdoc(self[name]) or "").partition("\n")[0]

    def _check_options(self, name: str, options: Mapping[str, Any]) -> None:
        known = self.options(name)
        for option in options:
            if option not in known:
                raise ConfigError(
                    f"Unknown option '{option}' for {self.kind} '{name}'. It takes: "
                    f"{', '.join(known) or 'no options'}.{nearest(option, list(known))}"
                )
        missing = [
            option
            for option, parameter in known.items()
            if parameter.default is inspect.Parameter.empty
            and parameter.kind
            not in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
            and option not in options
        ]
        if missing:
            raise ConfigError(
                f"The {self.kind} '{name}' needs {', '.join(repr(m) for m in missing)}: "
                "give a value for it."
            )

    def __getitem__(self, name: str) -> Callable[..., T]:
        try:
            return self._entries[name]
        except KeyError:
            names = list(self._entries)
            raise ConfigError(
                f"Unknown {self.kind} '{name}'. There are: {', '.join(names)}."
                f"{nearest(name, names)}"
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def check_number(
    name: str, value: object, *, above: float | None = None, least: float = -math.inf
) -> float:
    """Return the value of an option if it is a number in the range; raise InputError otherwise."""
    number = float(value) if isinstance(value, Real) else math.nan
    if not math.isfinite(number) or number < least or (above is not None and number <= above):
        wanted = f"above {above:g}" if above is not None else f"at least {least:g}"
        raise InputError(f"{name} must be a number {wanted} (got {value!r}).")
    return number


def check_count(name: str, value: object, *, least: int) -> None:
    """Raise InputError unless the value of an option is a whole number from `least` on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be a whole number, at least {least} (got {value!r}).")


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise InputError unless the value of an option is among the choices."""
    if not isinstance(value, str) or value not in choices:
        hint = nearest(value, list(choices)) if isinstance(value, str) else ""
        raise InputError(f"{name} must be one of {', '.join(choices)} (got {value!r}).{hint}")
