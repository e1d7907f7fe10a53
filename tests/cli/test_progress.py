import io

from rich.console import Console

from hsreject.cli.progress import progress_on


def test_without_a_terminal_each_stage_is_logged_once() -> None:
    stream = io.StringIO()
    with progress_on(Console(file=stream)) as progress:
        for step in range(5):
            progress("context", step, 4)
        progress("context", 4, 4)
        progress("sweep", 1, None)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "context ..."
    assert lines[1].startswith("context done in 0.")
    assert lines[2:] == ["sweep ..."]


def test_on_a_terminal_there_is_a_bar_a_stage() -> None:
    stream = io.StringIO()
    with progress_on(Console(file=stream, force_terminal=True, width=80)) as progress:
        progress("context", 1, 4)
        progress("context", 4, 4)
        progress("sweep", 1, None)
    shown = stream.getvalue()
    assert "context" in shown
    assert "sweep" in shown
    assert "━" in shown
