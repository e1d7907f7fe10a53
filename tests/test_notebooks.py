"""Every notebook runs from its first cell to its last, without a warning."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def outputs(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    return [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]


@every_notebook
def test_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # the package need not be installed
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    work = tmp_path / "work"
    work.mkdir()
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(work)}}
    ).execute()
    said = outputs(notebook.cells)
    assert not [output.text for output in said if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in said), "it shows no picture"


@every_notebook
def test_notebook_is_stored_thin(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert not outputs(notebook.cells)
    assert all(cell.get("execution_count") is None for cell in notebook.cells)
    assert notebook.cells[0].source.startswith("# ")
    assert len(path.read_bytes()) < 30_000


def test_notebooks_are_numbered_without_a_gap() -> None:
    assert NOTEBOOKS
    assert [int(path.stem[:2]) for path in NOTEBOOKS] == list(range(1, len(NOTEBOOKS) + 1))


@every_notebook
def test_links_between_notebooks_lead_somewhere(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        for target in re.findall(r"\]\((?!https?://)([^)#]+)\)", cell.source):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
