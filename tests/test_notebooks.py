"""Every notebook runs without a warning, and what is stored in it is what it says today.

``python -m tests.test_notebooks --write`` runs them and stores their outputs; numbers such as 01
after it choose some of them.
"""

import argparse
import os
import re
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def execute(path: Path) -> NotebookNode:
    """Return the notebook with the outputs of a run of its own, as they are to be stored."""
    notebook = nbformat.read(path, as_version=4)
    metadata = notebook.metadata.copy()  # the run adds what differs between computers
    with TemporaryDirectory() as work:
        client = NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": work}},
        )
        # the package need not be installed, and nobody's settings of IPython count
        client.execute(env=os.environ | {"PYTHONPATH": str(ROOT), "IPYTHONDIR": work})
    notebook.metadata = metadata
    for output in outputs(notebook):
        data = output.get("data", {})
        if "dataframe" not in data.get("text/html", "dataframe"):
            del data["text/html"]  # of xarray: heavy, and with identifiers that change
        if "image/png" in data:
            data["image/png"] = lighter(data["image/png"])
    return notebook


def lighter(picture: str) -> str:
    """Return a picture with a palette of 256 colors: a third of the bytes, and no eye tells."""
    image, file = Image.open(BytesIO(b64decode(picture))).convert("RGB"), BytesIO()
    image.quantize(256).save(file, "png", optimize=True)
    return b64encode(file.getvalue()).decode("ascii")


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def texts(cell: NotebookNode) -> list[str]:
    """Return what a cell says in words, without its pictures."""
    said = [
        output.get("text") or output.data["text/plain"]
        for output in cell.get("outputs", ())
        if "image/png" not in output.get("data", {})
    ]
    return [line for text in said for line in text.splitlines()]


@every_notebook
def test_it_runs_and_says_what_is_stored(path: Path) -> None:
    stored, fresh = nbformat.read(path, as_version=4), execute(path)
    assert not [output.text for output in outputs(fresh) if output.get("name") == "stderr"]
    for before, now in zip(stored.cells, fresh.cells, strict=True):
        assert texts(before) == texts(now), "refresh it: python -m tests.test_notebooks --write"
        assert len(before.get("outputs", ())) == len(now.get("outputs", ()))


@every_notebook
def test_it_is_stored_light(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith(f"# {int(path.stem[:2])}. ")
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert set(notebook.metadata.language_info) == {"name"}  # no version of a day
    assert sum("image/png" in output.get("data", {}) for output in outputs(notebook)) >= 2
    assert len(path.read_bytes()) < 500_000
    said = "\n".join(line for cell in notebook.cells for line in texts(cell))
    assert not re.search(r"/(tmp|home|root|Users|work)/|:\\", said), "a path of some computer"


def test_notebooks_are_numbered_without_a_gap() -> None:
    assert [int(path.stem[:2]) for path in NOTEBOOKS] == list(range(1, 9))


@every_notebook
def test_links_lead_somewhere(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        for target in re.findall(r"\]\((?!https?://)([^)#]+)\)", cell.source):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the notebooks and store their outputs.")
    parser.add_argument("--write", action="store_true", required=True)
    parser.add_argument("number", nargs="*", help="such as 01; all unless given")
    wanted = parser.parse_args().number
    for path in NOTEBOOKS:
        if not wanted or path.stem[:2] in wanted:
            nbformat.write(execute(path), path)


if __name__ == "__main__":
    main()
