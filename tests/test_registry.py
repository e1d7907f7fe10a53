"""Parts by name: right ones are made, and every mistake says what there is instead."""

import math
from typing import Literal

import pytest

from hsreject.errors import ConfigError, InputError
from hsreject.registry import Registry, bind_part, build_part, check_keys, check_number


class Lens:
    """A lens that focuses."""

    def __init__(
        self, power: float, *, glass: Literal["crown", "flint"] = "crown", coats: int | None = None
    ) -> None:
        if power < 0:
            raise InputError(f"power must be at least 0 (got {power}).")
        self.power, self.glass, self.coats = power, glass, coats


def grind(blank: str, depth: float = 0.5, *, tools: list[int] | None = None) -> str:
    """Grind a blank."""
    return f"{blank} ground to {depth} with {tools}"


LENSES = Registry("lens", {"convex": Lens})
CRAFTS = Registry("craft", {"grind": grind}, supplied=("blank",))


def test_a_table_a_name_and_an_object_are_all_parts() -> None:
    lens = build_part(LENSES, {"name": "convex", "power": 2, "coats": 3}, section="optics")
    assert (lens.power, lens.glass, lens.coats) == (2, "crown", 3)
    assert build_part(LENSES, lens, section="optics") is lens
    assert LENSES.create("convex", power=1).glass == "crown"
    assert LENSES.summary("convex") == "A lens that focuses."


def test_a_function_keeps_its_options_until_the_rest_is_supplied() -> None:
    assert list(CRAFTS.options("grind")) == ["depth", "tools"]
    part = bind_part(CRAFTS, {"name": "grind", "tools": [1]}, section="craft")
    assert part("glass") == "glass ground to 0.5 with [1]"
    assert bind_part(CRAFTS, grind, section="craft") is grind
    with pytest.raises(ConfigError, match="Unknown option 'blank'"):
        bind_part(CRAFTS, {"name": "grind", "blank": "glass"}, section="craft")


def test_mistakes_are_named_with_their_section() -> None:
    for table, word in (
        ("convex", "needs a value for 'power'"),
        ({"power": 2}, "needs a name. There are: convex"),
        ({"name": 3}, "text"),
        ({"name": "convexe"}, "Did you mean 'convex'"),
        ({"name": "convex", "power": "2"}, "a number"),
        ({"name": "convex", "power": True}, "a number"),
        ({"name": "convex", "power": 1, "glass": "oak"}, "'crown' or 'flint'"),
        ({"name": "convex", "power": 1, "coats": 1.5}, "a whole number"),
        ({"name": "convex", "power": -1}, "at least 0"),
        ({"name": "convex", "powr": 1}, "Did you mean 'power'"),
    ):
        with pytest.raises(ConfigError, match=rf"\[optics\].*{word}"):
            build_part(LENSES, table, section="optics")
    with pytest.raises(ConfigError, match=r"'contxt'.*Did you mean 'context'"):
        check_keys({"contxt": 1}, ["scene", "context"], section="")


def test_a_part_is_registered_once() -> None:
    lenses = Registry("lens", {"convex": Lens})
    lenses.register("concave", Lens)
    assert list(lenses) == ["convex", "concave"]
    with pytest.raises(ConfigError, match="'concave'"):
        lenses.register("concave", Lens)


def test_numbers_outside_their_range_are_refused() -> None:
    assert check_number("weight", 1, above=0, most=1) == 1.0
    for value in (0, 1.5, math.nan, math.inf, 10**400, -(10**400), True, "1", None):
        with pytest.raises(InputError, match="above 0 and at most 1"):
            check_number("weight", value, above=0, most=1)
