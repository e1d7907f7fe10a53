"""The pages of the site: their Python runs, their commands and configurations are understood.

`make docs` draws their pictures and follows their links.
"""

import doctest
import re
import shlex
import tomllib

import matplotlib.pyplot as plt
import pytest
import typer

from hsreject.cli import app
from hsreject.io.products import product
from hsreject.pipeline.parts import REGISTRIES
from hsreject.pipeline.plan import make_plan
from tests.pages import ROOT, blocks, commands

FOLDERS = ("", "start", "guides", "understand", "extend")  # the others are made by the build
PAGES = [page for name in FOLDERS for page in sorted((ROOT / "docs" / name).glob("*.md"))]


def pages_with(language: str) -> pytest.MarkDecorator:
    found = [page for page in PAGES if blocks(page, language)]
    assert found
    return pytest.mark.parametrize("page", found, ids=lambda page: page.stem)


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """A folder to work in, and registries that are as before when a page has added to them."""
    for registry in REGISTRIES.values():
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(product, "HDF5_FAMILIES", [*product.HDF5_FAMILIES])
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    plt.close("all")


@pages_with("python")
def test_python_runs(page, workshop) -> None:
    """Blocks with prompts print what they say, others run; all of a page share their names."""
    names: dict[str, object] = {"__name__": page.stem}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    parser, said = doctest.DocTestParser(), []
    for source, line in blocks(page, "python"):
        if source.startswith(">>>"):
            test = parser.get_doctest(source, names, page.stem, str(page), line)
            runner.run(test, out=said.append, clear_globs=False)
            names = test.globs
        else:
            exec(compile("\n" * line + source, str(page), "exec"), names)
    assert not runner.failures, "".join(said)


@pages_with("sh")
def test_commands_are_understood(page) -> None:
    """Every ``hsreject ...`` has a command and options that there are, and misses none."""
    program = typer.main.get_command(app)
    for name, *words in commands(page):
        assert name in {"hsreject", "make", "pip", "dask"}
        if name == "make":
            makefile = (ROOT / "Makefile").read_text("utf-8")
            assert re.search(rf"^{words[0]}:", makefile, flags=re.MULTILINE), words
        command = program
        while name == "hsreject" and hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
            if not hasattr(command, "commands"):
                command.make_context("hsreject", shlex.split(" ".join(words)))


@pages_with("toml")
def test_configurations_are_understood(page) -> None:
    for block in blocks(page, "toml"):
        make_plan({"scene": "synthetic", **tomllib.loads(block.source)})
