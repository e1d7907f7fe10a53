"""What goals decide on toy rankings, pinned: the same pixels get the same answers."""

import hashlib

import numpy as np
import pytest

import hsreject as hr
from tests.rejection.toys import toy_rankings

TOYS = {name: parts for name, *parts in toy_rankings()}
GOALS = {
    "fraction": hr.Goal(fraction=0.3),
    "accuracy": hr.Goal(accuracy=0.72),
    "accuracy 1": hr.Goal(accuracy=1.0),
    "cost": hr.Goal(rejection_cost=0.3),
    "max_error": hr.Goal(max_error=0.2),
}


def decided(name: str, goal: hr.Goal) -> tuple[int, bool, str]:
    """Return how many pixels have no answer, whether the goal is met, and a hash of the answers."""
    maps, reference = TOYS[name]
    ranking = hr.Ranking.of(maps)
    decision = hr.decide(ranking, goal, reference)
    answers = ranking.at(decision.threshold)["label_with_rejection"].values.astype(np.uint8)
    digest = hashlib.sha256(answers.tobytes()).hexdigest()[:12]
    return int((answers == 0).sum()), decision.reached, digest


PINNED = {  # goal: pixels without an answer, reached, hash
    "plain": {
        "fraction": (17, True, "67693406bb25"),
        "accuracy": (16, True, "0369af75111f"),
        "accuracy 1": (23, False, "0ff2fe762116"),
        "cost": (36, True, "7d43dbe7d0ff"),
        "max_error": (23, False, "0ff2fe762116"),
    },
    "ties": {
        "fraction": (15, True, "3b87c6416131"),
        "accuracy": (23, True, "0ff2fe762116"),
        "accuracy 1": (23, False, "0ff2fe762116"),
        "cost": (31, True, "1dd4cf695f33"),
        "max_error": (23, False, "0ff2fe762116"),
    },
    "unknown": {
        "fraction": (22, True, "85c168458f3c"),
        "accuracy": (22, True, "85c168458f3c"),
        "accuracy 1": (22, False, "85c168458f3c"),
        "cost": (34, True, "b14399b599db"),
        "max_error": (22, False, "85c168458f3c"),
    },
    "groups": {
        "fraction": (17, True, "14a9b7dba0a9"),
        "accuracy": (10, True, "c3930bfe6a2b"),
        "accuracy 1": (23, False, "9bf4b76ab732"),
        "cost": (26, True, "e877ea28c649"),
        "max_error": (16, False, "e17d2cb60f8a"),
    },
    "groups and unknown": {
        "fraction": (22, True, "0a9b5e1a16e8"),
        "accuracy": (15, True, "2ce88a413651"),
        "accuracy 1": (23, False, "abe60386d9ef"),
        "cost": (25, True, "988bea2c6357"),
        "max_error": (21, False, "43e24f1d44c6"),
    },
    "nothing right": {
        "fraction": (17, True, "91e2fe83c023"),
        "accuracy": (0, False, "58e756a6f1b8"),
        "accuracy 1": (0, False, "58e756a6f1b8"),
        "cost": (58, True, "212a246a6ed2"),
        "max_error": (0, False, "58e756a6f1b8"),
    },
    "nothing wrong": {
        "fraction": (17, True, "6ee419cf79ab"),
        "accuracy": (0, True, "85ef4e6d4e05"),
        "accuracy 1": (0, True, "85ef4e6d4e05"),
        "cost": (0, True, "85ef4e6d4e05"),
        "max_error": (0, False, "85ef4e6d4e05"),
    },
    "out of reach": {
        "fraction": (17, True, "ec3d94ddeb44"),
        "accuracy": (23, False, "a495dd89d6dd"),
        "accuracy 1": (23, False, "a495dd89d6dd"),
        "cost": (48, True, "c9c092b817d0"),
        "max_error": (23, False, "a495dd89d6dd"),
    },
    "few pixels": {
        "fraction": (17, True, "67693406bb25"),
        "accuracy": (0, False, "b3569f9cee18"),
        "accuracy 1": (0, False, "b3569f9cee18"),
        "cost": (39, True, "f67517b94977"),
        "max_error": (0, False, "b3569f9cee18"),
    },
    "all equal": {
        "fraction": (0, True, "b3569f9cee18"),
        "accuracy": (0, False, "b3569f9cee18"),
        "accuracy 1": (0, False, "b3569f9cee18"),
        "cost": (58, True, "212a246a6ed2"),
        "max_error": (0, False, "b3569f9cee18"),
    },
    "stack": {
        "fraction": (12, True, "5363838b3dc7"),
        "accuracy": (12, False, "5363838b3dc7"),
        "accuracy 1": (12, False, "5363838b3dc7"),
        "cost": (26, True, "6132325fb485"),
        "max_error": (12, False, "5363838b3dc7"),
    },
    "stack and unknown": {
        "fraction": (16, True, "c02a2141eccf"),
        "accuracy": (16, False, "c02a2141eccf"),
        "accuracy 1": (16, False, "c02a2141eccf"),
        "cost": (30, True, "2e480d6e3bb8"),
        "max_error": (16, False, "c02a2141eccf"),
    },
}


@pytest.mark.parametrize("name", TOYS)
def test_decisions_stay_as_they_are(name) -> None:
    assert {goal: decided(name, wanted) for goal, wanted in GOALS.items()} == PINNED[name]
