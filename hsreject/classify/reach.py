"""How far pixels matter to each other: what a scene that is mapped in blocks has to know."""

from __future__ import annotations

from collections.abc import Iterable


def total_reach(reaches: Iterable[int | None]) -> int | None:
    """Return the reach of steps that follow each other, or of influences that add up: the sum.

    Parameters
    ----------
    reaches : iterable of int or None
        The distance in pixels beyond which a step does not look; None for a step that needs the
        whole scene, which makes the whole need it.

    Examples
    --------
    >>> total_reach([4, 32]), total_reach([4, None]), total_reach([])
    (36, None, 0)
    """
    known = list(reaches)
    if any(reach is None for reach in known):
        return None
    return sum(reach for reach in known if reach is not None)
