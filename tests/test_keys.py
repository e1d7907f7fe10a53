"""Keys change with code, and only with code: files that users edit between two processes."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np

import hsreject as hr
from hsreject.keys import key_of

HELPER = """
def scale(x):
    return 2 * x
"""
MODULE = """
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property, partial

import numba
import helper
from sklearn.base import BaseEstimator, TransformerMixin

LIMIT = 3

class Base(ABC):
    __slots__ = ()
    @abstractmethod
    def value(self): ...

@numba.njit
def kernel(x):
    return x + 1

class Feature(Base, TransformerMixin, BaseEstimator):
    def __init__(self, weight=1): self.weight = weight
    def value(self): return helper.scale(self.weight) + LIMIT
    def fit(self, X): return super().fit(X)
    @property
    def doubled(self): return kernel(self.weight)
    @cached_property
    def slow(self): return Prior
    @classmethod
    def make(cls): return cls(weight={"a", "b", "c", "d"})

@dataclass(frozen=True)
class Prior:
    weight: float = 1.0
    parts: list = field(default_factory=list)
    def deep(self): return (lambda x: self.inner(x) in {"one", "two", "three"})
    def inner(self, x): return Feature(x)

def function(x):
    return Prior().deep()

objects = [Feature(2), Prior(), function, partial(function, 1), lambda x: x + LIMIT,
           Prior().inner, {"table": Feature}]
"""
CHANGES = (
    ("helper.py", "2 * x", "3 * x"),
    ("mine.py", "LIMIT = 3", "LIMIT = 4"),
    ("mine.py", "x + 1", "x + 2"),
    ("mine.py", '"three"', '"four"'),
    ("mine.py", "weight=1)", "weight=5)"),
    ("mine.py", "weight: float = 1.0", "weight: float = 2.0"),
)
SCRIPT = (
    MODULE
    + """
import json, sys
from pathlib import Path
from hsreject.keys import key_of

sys.dont_write_bytecode = True
told = [[key_of(part) for part in objects]]
texts = {name: Path(name).read_text() for name in ("helper.py", "mine.py")}
for edited, old, new in [("mine.py", "", ""), *json.loads(sys.argv[1])]:
    for name, text in texts.items():
        assert old in texts[edited]
        Path(name).write_text(text.replace(old, new) if name == edited else text)
        sys.modules.pop(name.removesuffix(".py"), None)
    from mine import objects
    told.append([key_of(part) for part in objects])
for name, text in texts.items():
    Path(name).write_text(text)
print(json.dumps(told))
"""
)


def keys_in_a_process(folder: Path) -> list[list[str]]:
    """Return the keys of the objects in a script, in a module, and in it after each change."""
    done = subprocess.run(
        [sys.executable, "script.py", json.dumps(CHANGES)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(hr.__file__).parents[1])},
        check=True,
        capture_output=True,
    )
    return json.loads(done.stdout)


def test_keys_are_those_of_the_code(tmp_path) -> None:
    for name, text in (("helper.py", HELPER), ("mine.py", MODULE), ("script.py", SCRIPT)):
        (tmp_path / name).write_text(text)
    told = keys_in_a_process(tmp_path)
    assert told == keys_in_a_process(tmp_path)
    in_script, in_module, *changed = told
    for keys in (in_script, in_module):
        assert None not in keys
        assert len(set(keys)) == len(keys)
    for change, keys in zip(CHANGES, changed, strict=True):
        assert keys[0] != in_module[0], change  # the feature, which names all the others


def test_values_in_closures_and_partials_count() -> None:
    def adding(term):
        return lambda x: x + term

    parts = [adding(1), adding(2), partial(max, 1), partial(max, 2), np.arange(3), np.arange(4)]
    found = [key_of(part) for part in parts]
    assert len(set(found)) == len(parts)
    assert found == [key_of(part) for part in parts]
    assert key_of(adding(1)) == found[0]


def test_equal_texts_need_not_be_one_object() -> None:
    one, other = ("".join(["n_", name]) for name in ("components", "components"))
    assert one is not other
    assert key_of({one: 1}, {one: 2}) == key_of({one: 1}, {other: 2})


def test_what_cannot_be_told_has_no_key(tmp_path) -> None:
    with (tmp_path / "file").open("w") as stream:
        assert key_of(stream) is None
        assert key_of(lambda: stream) is None
    endless: list[object] = []
    endless.append(endless)
    assert key_of(endless) is None
