"""Reference pages written by the program itself: public names, configuration, command line.

They are made anew at every build, in `docs/reference/`, from the stub with the public names, the
registries and the typer program. Nothing on them is written by hand.
"""

import ast
import importlib
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import indent

import typer
from numpydoc.docscrape import NumpyDocString
from sphinx.application import Sphinx
from sphinx.config import Config
from typer.cli import get_docs_for_click

import hsreject as hr
from hsreject.cli import app as program
from hsreject.cli.config_command import default_of
from hsreject.pipeline.parts import REGISTRIES
from hsreject.pipeline.plan import SECTIONS

CHAPTERS = {
    "Scenes, labels and maps": ("io", "schema", "datasets"),
    "Training pixels": ("splits",),
    "Features": ("features",),
    "Classifiers": ("classify",),
    "Context": ("context",),
    "Rejection": ("rejection", "confidence"),
    "Measures": ("measures",),
    "Promises": ("certification",),
    "Handing over": ("handover",),
    "Runs from a configuration": ("pipeline",),
    "Models and large scenes": ("mapping", "plugins"),
    "Pictures": ("plot",),
    "Reports": ("evaluation", "report"),
    "Errors and warnings": ("errors",),
}
"""Titles of the pages of public names, in the order of the work, and the modules they are from."""

RETURNED = {
    "io": ("io.describe.Description", "io.describe.ClassCount", "io.grid.PixelGrid"),
    "schema": ("schema.class_tree.Group",),
    "context": (
        "context.segsalsa.SegSALSAResult",
        "context.problem.Checkpoint",
        "context.preconditioned_admm.PreconditionedADMM",
        "context.admm.ADMM",
    ),
    "measures": (
        "measures.comparison.Comparison",
        "measures.comparison.Verdict",
        "measures.confusion.Agreement",
        "measures.point.Counts",
        "measures.samples.EvaluationSamples",
        "measures.uncertainty.Clusters",
    ),
    "certification": (
        "certification.sample.Design",
        "certification.assessment.Estimate",
        "certification.certificate.Guarantee",
        "certification.exact_tests.Requirement",
        "certification.exact_tests.Test",
        "certification.planning.Outlook",
    ),
    "rejection": ("rejection.decision.Decision", "rejection.ranking.Stack"),
    "mapping": (
        "mapping.map_scene.SceneMap",
        "mapping.map_summary.MapSummary",
        "mapping.map_summary.ClassShare",
        "mapping.map_summary.Rejection",
        "mapping.map_model.TrainingScene",
    ),
    "evaluation": ("evaluation.evaluation.NamedPoint",),
}
"""What public names return or hand over, but nobody makes by hand: pages without a public name."""


def public_names() -> dict[str, list[str]]:
    """Return the public names by the part of the package that they come from."""
    stub = ast.parse(Path(hr.__file__).with_suffix(".pyi").read_text("utf-8"))
    found: dict[str, list[str]] = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [alias.name for alias in node.names]
            found.setdefault(node.module.partition(".")[0], []).extend(names)
    found["plot"] = [f"plot.{name}" for name in hr.plot.__all__]
    classes = inspect.getmembers(hr.errors, inspect.isclass)
    found["errors"] = [f"errors.{name}" for name, _ in classes]
    return found


def name_pages() -> dict[str, str]:
    """Return the pages of public names by their titles: a table for each part of the package."""
    found = public_names()
    pages = {title: "\n".join(name_page(title, parts, found)) for title, parts in CHAPTERS.items()}
    homeless = set(found) - {part for parts in CHAPTERS.values() for part in parts}
    if homeless:
        raise ValueError(f"No page of the reference shows the names of {homeless}: see CHAPTERS.")
    return pages


def name_page(title: str, parts: tuple[str, ...], found: dict[str, list[str]]) -> Iterator[str]:
    """Yield one page of public names."""
    yield f"{title}\n{'=' * len(title)}\n\n.. currentmodule:: hsreject\n"
    for part in parts:
        yield summary(importlib.import_module(f"hsreject.{part}")) + "\n"
        yield from name_table(sorted(found[part], key=str.lower))
        if part in RETURNED:
            yield "What they return or hand over:\n"
            yield from name_table(RETURNED[part])


def name_table(names: Iterable[str]) -> Iterator[str]:
    """Yield a table of names, each with a page of its own."""
    yield ".. autosummary::\n   :toctree: names\n   :nosignatures:\n"
    yield from (f"   {name}" for name in names)
    yield ""


def summary(part: object) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(part) or "").partition("\n")[0]


def configuration_page() -> Iterator[str]:
    """Yield the page of configuration keys: those at the top, and the parts that they name."""
    yield "Configuration\n=============\n"
    yield (
        "A TOML file describes a run (``hsreject run``); in Python, the same tables do "
        "(:func:`hsreject.run`). Its keys are:\n"
    )
    yield from table("key", {key: ("", text) for key, text in SECTIONS.items()})
    for section, registry in REGISTRIES.items():
        yield f"[{section}]\n{'-' * 40}\n"
        for name in registry:
            yield f"{name}\n{'~' * 40}\n"
            yield registry.summary(name) + "\n"
            meaning = meanings(registry[name])
            options = {
                option: (default_of(section, option, given.default), meaning.get(option, ""))
                for option, given in registry.options(name).items()
            }
            if options:
                yield from table("option", options, defaults=True)


def meanings(part: object) -> dict[str, str]:
    """Return what the docstring says of each parameter."""
    listed = NumpyDocString(inspect.getdoc(part) or "")["Parameters"]
    return {
        name.strip(): "\n".join(entry.desc) for entry in listed for name in entry.name.split(",")
    }


def table(
    heading: str, rows: dict[str, tuple[str, str]], *, defaults: bool = False
) -> Iterator[str]:
    """Yield a table of names, perhaps their defaults, and what they mean."""
    titles = (heading, "default", "what it is") if defaults else (heading, "what it is")
    yield ".. list-table::\n   :header-rows: 1\n   :width: 100%\n"
    yield "   * - " + "\n     - ".join(titles)
    for name, (default, text) in rows.items():
        yield f"   * - ``{name}``"
        if defaults:
            yield f"     - ``{default}``"
        yield "     - " + indent(text, " " * 7).lstrip()
    yield ""


def command_page() -> str:
    """Return the page of commands, as typer describes its program."""
    command = typer.main.get_command(program)
    context = typer.Context(command, info_name="hsreject")
    text = get_docs_for_click(obj=command, ctx=context, name="hsreject")
    for part in command.commands.values():  # which typer cuts short in its list of them
        text = text.replace(part.get_short_help_str(), part.get_short_help_str(limit=200), 1)
    return "# Command line\n" + text.partition("\n")[2]


def write_pages(app: Sphinx, _: Config) -> None:
    """Write the pages that have changed."""
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    names = {title.lower().replace(",", "").replace(" ", "_"): title for title in CHAPTERS}
    by_title = name_pages()
    contents = "\n   ".join([*names, "configuration", "command_line"])
    pages = {
        "index.rst": "Reference\n=========\n\n"
        "The public names of ``import hsreject as hr`` in the order of the work, then the keys of "
        f"a configuration and the commands.\n\n.. toctree::\n   :maxdepth: 1\n\n   {contents}\n",
        "configuration.rst": "\n".join(configuration_page()),
        "command_line.md": command_page(),
        **{f"{stem}.rst": by_title[title] for stem, title in names.items()},
    }
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
