from typing import Literal

import pytest
from hsreject.config.parts import spell

from hsreject.errors import ConfigError, InputError
from hsreject.registry import Registry, build_part, check_keys, fits


class Lens:
    """A lens."""

    def __init__(
        self, power: float, *, glass: Literal["crown", "flint"] = "crown", coats: int | None = None
    ) -> None:
        if power < 0:
            raise InputError(f"power must be at least 0 (got {power}).")
        self.power, self.glass, self.coats = power, glass, coats


LENSES = Registry("lens", {"convex": Lens})


def test_a_table_a_name_and_an_object_are_all_parts() -> None:
    lens = build_part(LENSES, {"name": "convex", "power": 2, "coats": 3}, section="optics")
    assert (lens.power, lens.glass, lens.coats) == (2, "crown", 3)
    assert build_part(LENSES, lens, section="optics") is lens
    with pytest.raises(ConfigError, match=r"\[optics\] The lens 'convex' needs 'power'"):
        build_part(LENSES, "convex", section="optics")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"power": 2}, r"\[optics\] needs a name. There are: convex."),
        ({"name": 3}, r"\[optics\] name must be text \(got 3\)"),
        ({"name": "convexe"}, r"\[optics\] Unknown lens 'convexe'.*Did you mean 'convex'\?"),
        (
            {"name": "convex", "power": "2"},
            r"'power' of lens 'convex' must be a number \(got '2'\)",
        ),
        ({"name": "convex", "power": True}, r"must be a number \(got True\)"),
        (
            {"name": "convex", "power": 1, "glass": "oak"},
            r"must be 'crown' or 'flint' \(got 'oak'\)",
        ),
        ({"name": "convex", "power": 1, "coats": 1.5}, r"must be a whole number \(got 1.5\)"),
        ({"name": "convex", "power": -1}, r"\[optics\] power must be at least 0 \(got -1\)"),
        ({"name": "convex", "powr": 1}, r"Unknown option 'powr'.*Did you mean 'power'\?"),
    ],
)
def test_mistakes_are_named_with_their_section(table, message) -> None:
    with pytest.raises(ConfigError, match=message):
        build_part(LENSES, table, section="optics")


def test_unknown_keys_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"Unknown key 'contxt' at the top.*'context'\?"):
        check_keys({"contxt": 1}, ["scene", "context"], section="")


@pytest.mark.parametrize(
    ("value", "annotation", "answer"),
    [
        (None, int | None, True),
        (True, int, False),
        ([1], list[int], True),
        ("a", bool, False),
        (1, str, False),
    ],
)
def test_types(value, annotation, answer) -> None:
    assert fits(value, annotation) is answer


def test_types_are_spelt_in_words() -> None:
    assert spell(float | str | None) == "a number or text"
