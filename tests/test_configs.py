"""The configurations that come with hsreject name only what exists."""

from pathlib import Path

import pytest

from hsreject.pipeline.config import read_document
from hsreject.pipeline.plan import make_plan

CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_configuration_makes_a_plan(path: Path) -> None:
    plan = make_plan(read_document(path))
    assert plan.title
    assert plan.rejectors
