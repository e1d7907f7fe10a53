"""What a map can be asked for."""

import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import ConfigError, InputError

KINDS = {"accuracy": 0.95, "max_error": 0.05, "rejection_cost": 0.3, "fraction": 0.1}


@pytest.mark.parametrize(("kind", "value"), KINDS.items())
def test_a_goal_is_one_number_with_a_name(kind, value) -> None:
    goal = hr.Goal(**{kind: np.float32(value)})
    assert (goal.kind, goal.value) == (kind, pytest.approx(value))
    assert hr.Goal.from_table({kind: value}) == hr.Goal(**{kind: value})
    assert goal.needs_reference == (kind != "fraction")


def test_a_threshold_may_be_any_number() -> None:
    assert hr.Goal(threshold=-3.5).value == -3.5
    with pytest.raises(ConfigError, match="threshold"):
        hr.Goal.from_table({"threshold": 0.5})
    assert hr.Goal(threshold=-(10**400)).value == -np.inf


@pytest.mark.parametrize("requested", [{}, {"accuracy": 0.9, "fraction": 0.1}])
def test_exactly_one_is_asked_for(requested) -> None:
    with pytest.raises(InputError, match="exactly one of accuracy"):
        hr.Goal(**requested)
    with pytest.raises(ConfigError, match=r"\[goal\].*exactly one"):
        hr.Goal.from_table(requested)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [95, -0.1, "much", True, float("nan"), np.ones(2), 10**400])
def test_what_is_no_share_gets_a_sentence(kind, value) -> None:
    with pytest.raises(InputError, match=kind):
        hr.Goal(**{kind: value})


def test_percent_are_named_as_such() -> None:
    with pytest.raises(ConfigError, match=r"got 95\)\. Write 95 % as 0\.95"):
        hr.Goal.from_table({"accuracy": 95})
    with pytest.raises(InputError, match="above 0 and below 1"):
        hr.Goal(max_error=0)
    with pytest.raises(ConfigError, match="Did you mean 'accuracy'"):
        hr.Goal.from_table({"acuracy": 0.9})
    with pytest.raises(ConfigError, match="table"):
        hr.Goal.from_table(0.9)
