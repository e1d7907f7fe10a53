import pytest

from hsreject.errors import ConfigError
from hsreject.registry import Registry


class Lamp:
    """A lamp that shines."""

    def __init__(self, weight: float, *, edge_weight: float = 1.0) -> None:
        self.weight = weight
        self.edge_weight = edge_weight


@pytest.fixture
def lamps() -> Registry[Lamp]:
    return Registry("lamp", {"desk": Lamp})


def test_creates_with_the_constructors_own_defaults(lamps: Registry[Lamp]) -> None:
    lamp = lamps.create("desk", weight=2.0)
    assert (lamp.weight, lamp.edge_weight) == (2.0, 1.0)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("dekc", {}, r"Unknown lamp 'dekc'. There are: desk. Did you mean 'desk'\?"),
        (
            "desk",
            {"wieght": 1},
            r"Unknown option 'wieght' for lamp 'desk'. It takes: weight, edge_weight. "
            r"Did you mean 'weight'\?",
        ),
        ("desk", {}, "The lamp 'desk' needs 'weight'"),
    ],
)
def test_mistakes_are_named(lamps, name, options, message) -> None:
    with pytest.raises(ConfigError, match=message):
        lamps.create(name, **options)


def test_registers_once(lamps: Registry[Lamp]) -> None:
    lamps.register("floor", Lamp)
    assert list(lamps) == ["desk", "floor"]
    assert lamps.summary("floor") == "A lamp that shines."
    with pytest.raises(ConfigError, match="already a lamp named 'floor'"):
        lamps.register("floor", Lamp)
