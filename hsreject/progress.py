"""How long work tells how far it is: a callback that the command line turns into a progress bar."""

from typing import Protocol


class ProgressCallback(Protocol):
    """A callable that long work calls now and then.

    Parameters
    ----------
    stage : str
        What is being done, in a few words ("context", "joint sweep").
    done : float
        How much of it is done, in the unit of `total`.
    total : float or None
        How much there is in all; None while nobody knows.
    """

    def __call__(self, stage: str, done: float, total: float | None) -> None:
        """Take note of the progress."""


def no_progress(stage: str, done: float, total: float | None) -> None:
    """Ignore the progress: the default of every function that reports some."""
