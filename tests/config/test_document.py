import pytest

from hsreject.errors import ConfigError, FileError
from hsreject.pipeline.config import read_document, with_settings


def test_settings_leave_the_original_alone() -> None:
    document = {"context": {"weight": 2.0}}
    changed = with_settings(document, ["context.weight=4", "seed=7", "output.name=west field"])
    assert document == {"context": {"weight": 2.0}}
    assert changed == {"context": {"weight": 4}, "seed": 7, "output": {"name": "west field"}}


def test_a_list_of_tables_is_addressed_by_name_or_number() -> None:
    document = {"features": [{"name": "mnf"}, {"name": "scale"}]}
    assert with_settings(document, ["features.1.robust=true"])["features"][1]["robust"] is True
    assert with_settings(document, ["features.mnf.n_components=3"])["features"][0] == {
        "name": "mnf",
        "n_components": 3,
    }


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("context.weight", "must look like section.key=value"),
        ("=4", "must look like section.key=value"),
        ("features.mfn.n=4", r"There are: mnf. Did you mean 'mnf'\?"),
        ("features.mnf=4", "ends at a list of tables"),
        ("seed.inner=4", "goes through 'seed', which is a value"),
    ],
)
def test_wrong_settings_are_explained(setting, message) -> None:
    with pytest.raises(ConfigError, match=message):
        with_settings({"seed": 1, "features": [{"name": "mnf"}]}, [setting])


def test_unreadable_files_are_explained(tmp_path) -> None:
    with pytest.raises(FileError, match="There is no configuration file"):
        read_document(tmp_path / "missing.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("seed = = 3")
    with pytest.raises(ConfigError, match=r"not valid TOML: .*line 1"):
        read_document(broken)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="cannot be read as text"):
        read_document(binary)
