"""What is published agrees with itself: versions, dependencies, citation, the files of a wheel."""

import json
import re
import tomllib
import zipfile
from pathlib import Path

import jsonschema
import yaml
from hatchling.build import build_wheel

import hsreject as hr
from tools import release_check

ROOT = Path(__file__).parents[1]
CONDA_NAMES = {"dask": "dask-core", "matplotlib": "matplotlib-base"}

TEXT = {"type": "string", "minLength": 1}
PERSON = {
    "type": "object",
    "properties": {"family-names": TEXT, "given-names": TEXT},
    "required": ["family-names"],
    "additionalProperties": False,
}
ENTITY = {
    "type": "object",
    "properties": {"name": TEXT},
    "required": ["name"],
    "additionalProperties": False,
}
AUTHORS = {"type": "array", "minItems": 1, "items": {"anyOf": [PERSON, ENTITY]}}
REFERENCE = {
    "type": "object",
    "properties": {
        "type": {"enum": ["article", "data", "book", "software"]},
        "title": TEXT,
        "authors": AUTHORS,
        "journal": TEXT,
        "publisher": ENTITY,
        "volume": {"type": ["integer", "string"]},
        "start": {"type": ["integer", "string"]},
        "end": {"type": ["integer", "string"]},
        "year": {"type": "integer"},
        "doi": {"type": "string", "pattern": r"^10\.\d{4,9}(\.\d+)?/[A-Za-z0-9:/_;\-.()\[\]\\]+$"},
        "url": {"type": "string", "pattern": "^https://"},
    },
    "required": ["type", "title", "authors"],
    "additionalProperties": False,
}
FILE = {
    "type": "object",
    "properties": {
        "cff-version": {"const": "1.2.0"},
        "message": TEXT,
        "type": {"enum": ["software", "dataset"]},
        "title": TEXT,
        "abstract": TEXT,
        "authors": AUTHORS,
        "license": {"const": "BSD-3-Clause"},
        "version": {"const": hr.__version__},
        "date-released": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"},
        "url": {"type": "string", "pattern": "^https://"},
        "repository-code": {"type": "string", "pattern": "^https://"},
        "keywords": {"type": "array", "items": TEXT, "uniqueItems": True},
        "references": {"type": "array", "items": REFERENCE},
    },
    "required": ["cff-version", "message", "title", "authors"],
    "additionalProperties": False,
}


def test_the_citation_file_is_valid() -> None:
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    jsonschema.Draft7Validator.check_schema(FILE)
    jsonschema.validate(json.loads(json.dumps(yaml.safe_load(text), default=str)), FILE)
    assert re.search("Kovačević", text)


def test_the_changelog_knows_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest = re.search(r"^## (\S+) \((.+)\)", text, flags=re.MULTILINE)
    assert newest
    assert newest[1] == hr.__version__ or newest[2] == "unreleased"


def test_the_conda_recipe_asks_for_the_same_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text("utf-8"))
    wanted = {f"python {project['requires-python']}"}
    for line in project["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(?:\[\w+\])?(>=[\d.]+)", line).groups()
        wanted.add(f"{CONDA_NAMES.get(name, name)} {bound}")
    assert set(recipe["requirements"]["run"]) == wanted
    assert recipe["context"]["version"] == hr.__version__


def test_a_wheel_holds_types_pages_and_tables(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / build_wheel(str(tmp_path))) as wheel:
        held = set(wheel.namelist())
    files = {path.relative_to(ROOT) for path in (ROOT / "hsreject").rglob("*") if path.is_file()}
    source = {path.as_posix() for path in files if "__pycache__" not in path.parts}
    assert {"hsreject/py.typed", "hsreject/report/explorer.js"} <= source <= held


def test_actions_are_pinned_and_keep_no_credentials() -> None:
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
        for job in jobs.values():
            for step in job["steps"]:
                if "uses" not in step:
                    continue
                action, version = step["uses"].split("@")
                assert re.fullmatch(r"[0-9a-f]{40}", version), step
                if action == "actions/checkout":
                    assert step["with"]["persist-credentials"] is False


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.split(r"[\[>=]", one)[0] for one in project["dependencies"]}
    assert {"cloudpickle", "fsspec", "pillow"} <= declared


def test_a_release_needs_its_version_and_real_addresses() -> None:
    found = list(release_check.problems("v9.9.9"))
    assert any("CITATION.cff says version" in one for one in found)
    assert any("CHANGELOG.md" in one for one in found)
    assert any("pyproject.toml has addresses that are only reserved" in one for one in found)
