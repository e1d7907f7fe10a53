"""Every registered figure draws, saves and says what differs."""

import sys
from pathlib import Path

import pytest

from hsreject.cli import main
from hsreject.errors import ConfigError, FileError
from hsreject.experiments import FIGURES


@pytest.mark.parametrize("number", ["2", "3", "4", "5", "6"])
def test_figure_by_one_command(
    number: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["hsreject", "figure", number, "--out", str(tmp_path / "new")])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    written = {file.name for file in (tmp_path / "new").iterdir()}
    assert written == {f"figure-{number}.{suffix}" for suffix in ("png", "pdf", "txt")}
    text = (tmp_path / "new" / f"figure-{number}.txt").read_text(encoding="utf-8")
    assert text.startswith(f"Figure {number}. ")
    assert "Differences from the paper. " in text
    shown = capsys.readouterr().out
    assert text in shown
    assert max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.parametrize("number", list(FIGURES))
def test_every_figure_has_a_summary_and_only_options_with_defaults(number: str) -> None:
    assert FIGURES.summary(number).endswith(".")
    assert all(option.default is not option.empty for option in FIGURES.options(number).values())


def test_figure_5_states_what_the_paper_notes() -> None:
    made = FIGURES.create("5", n_per_class=500)
    assert "nonnegative against all others" in " ".join(made.text().split())


def test_unknown_figure_names_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"Unknown figure '9'\. There are: 2, 3, 4, 5, 6, 7, 8\."):
        FIGURES.create("9")


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileError, match="file is a file"):
        FIGURES.create("2").save(tmp_path / "file" / "inside")
