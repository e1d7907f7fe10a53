import io
import signal
import sys

import pytest
from rich.console import Console

from hsreject.cli.console import distinct, print_line, print_table, progress_on


def test_without_a_terminal_each_stage_is_logged_once() -> None:
    stream = io.StringIO()
    with progress_on(Console(file=stream)) as progress:
        for step in range(5):
            progress("context", step, 4)
        progress("context", 4, 4)
        progress("loading", 0, None)
        progress("loading", 1, None)
        progress("sweep", 1, 4)  # so loading has ended, though nobody knew its total
        progress("sweep", 2, 4)
    lines = stream.getvalue().splitlines()
    assert lines[::2] == ["context ...", "loading ...", "sweep ..."]
    assert lines[1].startswith("context done in 0.")
    assert lines[3].startswith("loading done in 0.")


def test_steps_of_a_stage_belong_to_its_line_and_another_seed_has_lines_again() -> None:
    stream = io.StringIO()
    with progress_on(Console(file=stream)) as progress:
        for _ in range(2):
            progress("choosing", 0, 1)
            progress("tuning", 1, 2)
            progress("tuning", 2, 2)
            progress("choosing", 1, 1)
    words = [line.split(" in ")[0] for line in stream.getvalue().splitlines()]
    assert words == ["choosing ...", "choosing done"] * 2
    stream = io.StringIO()
    terminal = Console(file=stream, force_terminal=True, width=80, color_system=None)
    with progress_on(terminal) as progress:
        progress("choosing", 0, 1)
        progress("tuning", 1, 2)
    *_, last, _ = stream.getvalue().splitlines()
    assert "choosing: tuning " in last
    assert last.count("━") > 0


def test_on_a_terminal_there_is_one_bar_per_stage() -> None:
    stream = io.StringIO()
    terminal = Console(file=stream, force_terminal=True, width=80, color_system=None)
    with progress_on(terminal) as progress:
        progress("context", 4, 4)
        progress("loading", 0, None)
        progress("sweep", 1, 4)
    *_, context, loading, sweep, _ = stream.getvalue().splitlines()
    assert loading.replace("loading", "context") in context  # both are complete
    assert "━" in loading
    assert loading.count("━") > sweep.count("━") > 0
    assert sweep.startswith("sweep ")


class Finalised:
    """What receives a signal while it is thrown away: Python cannot raise anything there."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def __del__(self) -> None:
        signal.raise_signal(self._number)


@pytest.fixture
def listening():
    """The handlers of a terminal; tests that run in the background have none."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {n: signal.signal(n, signal.default_int_handler) for n in numbers}
    yield
    for number, handler in before.items():
        assert signal.getsignal(number) is signal.default_int_handler
        signal.signal(number, handler)


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_python_drops_ends_the_work(number, monkeypatch) -> None:
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    stream = io.StringIO()
    with progress_on(Console(file=stream)) as progress:
        progress("context", 0, 2)
        Finalised(number)
        with pytest.raises(KeyboardInterrupt):
            progress("context", 1, 2)
    assert told == []
    assert stream.getvalue() == "context ...\n"


@pytest.mark.usefixtures("listening")
def test_an_interrupt_that_becomes_another_error_is_one_still() -> None:
    def read() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise SystemError("returned a result with an exception set") from None

    with pytest.raises(KeyboardInterrupt), progress_on(Console(file=io.StringIO())):
        read()


@pytest.mark.usefixtures("listening")
def test_an_error_without_an_interrupt_stays_one() -> None:
    with pytest.raises(SystemError), progress_on(Console(file=io.StringIO())):
        raise SystemError("as before")


@pytest.mark.usefixtures("listening")
def test_an_interrupt_elsewhere_is_raised_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), progress_on(Console(file=io.StringIO())):
        signal.raise_signal(signal.SIGINT)


def test_other_listeners_are_left_alone(listening) -> None:
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append("pressed"))
    with progress_on(Console(file=io.StringIO())) as progress:
        signal.raise_signal(signal.SIGINT)
        progress("context", 1, 2)
    assert heard == ["pressed"]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_names_do_not_steer_the_terminal(capsys) -> None:
    print_table(("class", "kept"), [("soil\x1b[2J", "\x9b1m")], title="\x1b]0;title\a")
    print_line("wrote \x1b[8mmap\u202e.tif")
    assert capsys.readouterr().out.translate({10: None}).isprintable()


def test_numbers_have_the_digits_that_tell_them_apart() -> None:
    assert distinct([0.5, 0.25, 0.5]) == ["0.5000", "0.2500", "0.5000"]
    assert distinct([0.9999981, 0.9999984, 0.9]) == ["0.9999981", "0.9999984", "0.9000000"]
    assert distinct([1.0, 1.0 - 1e-12]) == ["1.000000000", "1.000000000"]


def test_a_table_shows_names_as_they_are(capsys) -> None:
    print_table(("class", "kept"), [("soil [wet] :corn:", "1")], title="[fields]")
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == [
        "[fields]",
        "class              kept",
        "soil [wet] :corn:     1",
    ]
