"""``hsreject groups``: a proposal from the confusions of a run, which a run then takes."""

import tomllib

import numpy as np
import pytest
import tomli_w

import hsreject as hr
from hsreject.errors import InputError
from tests.cli.calling import call

CONFIG = {
    "scene": {"name": "synthetic", "rows": 40, "columns": 40},
    "features": [{"name": "pca", "n_components": 5}],
    "classifier": "lda",
}


def test_a_proposal_is_a_section_that_a_run_takes(tmp_path, capsys) -> None:
    (tmp_path / "config.toml").write_text(tomli_w.dumps(CONFIG), "utf-8")
    assert call("run", tmp_path / "config.toml", "--out", tmp_path / "run") == 0
    proposal = tmp_path / "groups.toml"
    assert call("groups", tmp_path / "run", "--out", proposal) == 0
    assert "proposal" in capsys.readouterr().out
    groups = tomllib.loads(proposal.read_text("utf-8"))["groups"]
    result = hr.open_tree(tmp_path / "run" / "result.nc")
    hr.ClassTree.from_groups(hr.schema.class_table(result["test"]), groups)
    assert hr.run({**CONFIG, "groups": groups})["delivered"].attrs["rejector"] == "hierarchical"
    assert call("groups", tmp_path / "run", "--out", proposal) == 2
    assert call("groups", tmp_path / "run", "--out", proposal, "--least", 0.99, "--overwrite") == 2
    assert "--least" in capsys.readouterr().err
    assert tomllib.loads(proposal.read_text("utf-8"))["groups"] == groups
    assert call("groups", tmp_path / "nowhere") == 2


def test_classes_taken_for_each_other_are_joined() -> None:
    classes = hr.ClassTable.from_names(["a", "b", "c", "d", "e"], values=[1, 3, 5, 7, 9])
    rng = np.random.default_rng(0)
    reference = rng.choice(classes.values, 4000)
    label = reference.copy()
    swapped = rng.uniform(size=4000) < 0.2
    for one, other in ((1, 5), (5, 1), (7, 9), (9, 7)):
        label[swapped & (reference == one)] = other
    assert hr.propose_groups(label, reference, classes) == {
        "a or c": ["a", "c"],
        "d or e": ["d", "e"],
    }
    assert hr.propose_groups(reference, reference, classes) == {}
    everything = rng.choice(classes.values, 4000)  # confused with all: a class stays outside
    groups = hr.propose_groups(everything, reference, classes)
    assert sum(map(len, groups.values())) <= 5
    hr.ClassTree.from_groups(classes, groups)


def test_unknown_shapes_are_refused() -> None:
    with pytest.raises(InputError, match="shape"):
        hr.propose_groups([1, 2], [1], hr.ClassTable.from_names(["a", "b"]))
