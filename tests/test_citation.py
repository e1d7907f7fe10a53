"""CITATION.cff follows the Citation File Format 1.2.0, as far as it uses it."""

import re
from pathlib import Path

import jsonschema
import yaml

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
        "keywords": {"type": "array", "items": TEXT, "uniqueItems": True},
        "references": {"type": "array", "items": REFERENCE},
    },
    "required": ["cff-version", "message", "title", "authors"],
    "additionalProperties": False,
}


def test_the_citation_file_is_valid() -> None:
    text = (Path(__file__).parents[1] / "CITATION.cff").read_text("utf-8")
    content = yaml.safe_load(text)
    jsonschema.Draft7Validator.check_schema(FILE)
    jsonschema.validate(content, FILE)
    assert re.search("Kovačević", text)
