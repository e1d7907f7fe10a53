"""Configurations as tables: what a file says, with settings applied."""

import numpy as np
import pytest

from hsreject.errors import ConfigError, FileError
from hsreject.pipeline.config import read_document, with_settings


def test_settings_leave_the_original_alone() -> None:
    array = np.zeros(3)
    document = {"context": {"weight": 2.0}, "scene": (array, array)}
    changed = with_settings(document, ["context.weight=4", "seed=7", "output.name=west field"])
    assert document["context"] == {"weight": 2.0}
    assert changed["context"] == {"weight": 4}
    assert changed["seed"] == 7
    assert changed["output"] == {"name": "west field"}
    assert changed["scene"][0] is array  # scenes are not copied


def test_a_list_of_tables_is_addressed_by_name_or_number() -> None:
    document = {"features": [{"name": "mnf"}, {"name": "scale"}]}
    assert with_settings(document, ["features.1.robust=true"])["features"][1]["robust"] is True
    changed = with_settings(document, ["features.mnf.n_components=3"])
    assert changed["features"][0] == {"name": "mnf", "n_components": 3}
    assert document["features"] == [{"name": "mnf"}, {"name": "scale"}]


def test_wrong_settings_are_explained() -> None:
    for setting, word in (
        ("context.weight", "section.key=value"),
        ("=4", "section.key=value"),
        ("features.mfn.n=4", "Did you mean 'mnf'"),
        ("features.mnf=4", "key of a table.*mnf"),
        ("seed.inner=4", "'seed'"),
    ):
        with pytest.raises(ConfigError, match=word):
            with_settings({"seed": 1, "features": [{"name": "mnf"}]}, [setting])


def test_unreadable_files_are_explained(tmp_path) -> None:
    with pytest.raises(FileError, match="no configuration file"):
        read_document(tmp_path / "missing.toml")
    (tmp_path / "broken.toml").write_text("seed = = 3")
    with pytest.raises(ConfigError, match="line 1"):
        read_document(tmp_path / "broken.toml")
    for endless in (f"seed = {'1' * 5000}", f"seed = {'[' * 10**5}"):
        (tmp_path / "broken.toml").write_text(endless)
        with pytest.raises(ConfigError, match="not valid TOML"):
            read_document(tmp_path / "broken.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="as text"):
        read_document(tmp_path / "binary.toml")
