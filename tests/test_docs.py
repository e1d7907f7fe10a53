"""The pages of the site: their Python runs, their commands and configurations are understood.

`make docs` draws their pictures and follows their links.
"""

import ast
import doctest
import inspect
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import typer

import hsreject as hr
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


def test_a_promise_is_never_stated_without_its_confidence() -> None:
    """Who reads "at most 5 %" reads in the same paragraph how sure that is."""
    others = {ROOT / "docs" / "results.md"}  # its tables have a head
    pages = {*PAGES, ROOT / "README.md", *(ROOT / "examples").rglob("plot_*.py")} - others
    stated = {
        (page.name, paragraph)
        for page in pages
        for paragraph in re.split(r"\n\s*\n", page.read_text("utf-8"))
        if re.search(r"at most\s5( |&nbsp;)% (of|errors)", paragraph)
    }
    assert len(stated) > 4
    assert [one for one in stated if not re.search(r"90( |&nbsp;)%", one[1])] == []


def public_parts() -> dict[str, object]:
    """Return the public names that can be called, with those of plots."""
    stub = ast.parse(Path(hr.__file__).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    names = [alias.name for node in imports for alias in node.names]
    parts = {name: getattr(hr, name) for name in names}
    parts |= {f"plot.{name}": getattr(hr.plot, name) for name in hr.plot.__all__}
    return {name: part for name, part in parts.items() if callable(part)}


def test_every_public_name_has_others_to_see() -> None:
    parts = public_parts()
    assert len(parts) > 100
    for name, part in parts.items():
        section = re.search(r"See Also\n-+\n((?:\S.*\n?)+)", inspect.getdoc(part))
        assert section, name
        entries = [line.split(" : ") for line in section[1].splitlines()]
        for link, words in entries:
            other = link.removeprefix("hsreject.").removeprefix("errors.")
            assert other in parts.keys() - {name}, (name, other)
            assert words.endswith("."), (name, words)


def test_every_public_name_has_an_example() -> None:
    bare = {name for name, part in public_parts().items() if ">>> " not in inspect.getdoc(part)}
    assert bare == {"Certificate"}


def returned_types(part: object) -> Iterator[str]:
    """Yield the words of all annotations of what a public part returns or holds."""
    members = [*vars(part).values()] if inspect.isclass(part) else [part]
    for member in members:
        function = getattr(member, "fget", None) or getattr(member, "func", member)
        if inspect.isfunction(function) and not function.__name__.startswith("_"):
            yield from re.findall(r"\w+", str(inspect.signature(function).return_annotation))
    if inspect.isclass(part) and part.__module__.startswith("hsreject"):
        for annotation in vars(part).get("__annotations__", {}).values():
            yield from re.findall(r"\w+", str(annotation))


def test_what_calls_return_has_a_page() -> None:
    """Every dataclass that a public name returns or holds is public, or listed in the reference."""
    script = ast.parse((ROOT / "docs" / "_ext" / "reference.py").read_text("utf-8"))
    (listed,) = (
        ast.literal_eval(node.value)
        for node in script.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "RETURNED"
    )
    pages = {path for paths in listed.values() for path in paths}
    shown = {path.rpartition(".")[2] for path in pages} | set(public_parts())
    words = {word for part in public_parts().values() for word in returned_types(part)}
    package = Path(hr.__file__).parent
    sources = [path.read_text("utf-8") for path in package.rglob("*.py")]
    frozen = r"@dataclass\(frozen=True[^)]*\)\nclass (\w+)"
    dataclasses = {name for source in sources for name in re.findall(frozen, source)}
    assert dataclasses & words <= shown | {"BandRequirements"}  # for those who write models
    for path in pages:
        module, _, name = path.rpartition(".")
        assert f"class {name}" in (package / f"{module.replace('.', '/')}.py").read_text("utf-8")


def test_public_names_follow_one_grammar() -> None:
    """Options go by keyword, samples have a `sample_weight`, and what writes a file returns it."""
    for name, part in public_parts().items():
        if name.startswith("Hsreject"):  # exceptions
            continue
        parameters = inspect.signature(part).parameters.values()
        optional = [
            one.name
            for one in parameters
            if one.kind is one.POSITIONAL_OR_KEYWORD and one.default is not one.empty
        ]
        made_by_calls = name.startswith("plot.") or name == "Evaluation"
        assert len(optional) <= 1 or made_by_calls, (name, optional)
        assert "weights" not in {one.name for one in parameters}, name
        is_writer = name.startswith(("write_", "save_model"))
        writer = part if is_writer else vars(part).get("write") if inspect.isclass(part) else None
        if writer is not None:
            signature = inspect.signature(writer)
            assert signature.parameters["overwrite"].kind is inspect.Parameter.KEYWORD_ONLY, name
            assert signature.return_annotation in {"Path", "list[Path]"}, name
