"""Wavelengths in nanometres, whichever way a file says them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NANOMETRES = "nm"
MICROMETRES = "um"

_LIGHT_NM = {"GHz": 299_792_458.0, "MHz": 299_792_458e3}  # speed of light, in nm times that
# Imaging spectrometers see from the ultraviolet to the thermal infrared.
_SHORTEST, _LONGEST = 100.0, 100_000.0
_PER_UNIT = {NANOMETRES: 1.0, MICROMETRES: 1e3, "mm": 1e6, "m": 1e9, "angstrom": 0.1}
_UNIT_WORDS = {
    NANOMETRES: r"nm|nanomet(?:er|re)s?",
    MICROMETRES: r"[uµμ]m|microns?|micromet(?:er|re)s?",
    "mm": r"mm|millimet(?:er|re)s?",
    "m": r"m|met(?:er|re)s?",
    "angstrom": r"angstroms?|å",
    "1/cm": r"wavenumbers?|1/cm|cm-1|cm\^-1",
    "GHz": r"ghz|gigahertz",
    "MHz": r"mhz|megahertz",
    "index": r"index",
}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WITH_UNIT = re.compile(
    rf"({_NUMBER})\s*({_UNIT_WORDS[NANOMETRES]}|{_UNIT_WORDS[MICROMETRES]})(?![a-z])", re.IGNORECASE
)
_BRACKETED = re.compile(rf".*[(\[]\s*({_NUMBER})\s*[)\]].*")
_ALONE = re.compile(rf"\s*({_NUMBER})\s*")
_ONLY_DECIMAL = re.compile(r"[^.]*?(?<!\d)(\d+\.\d+)[^.]*")


def known_unit(text: str | None) -> str | None:
    """Return the unit that a word means, or None if it means none.

    Examples
    --------
    >>> known_unit("Micrometers"), known_unit("nm"), known_unit("Unknown")
    ('um', 'nm', None)
    """
    word = (text or "").strip().lower()
    for unit, pattern in _UNIT_WORDS.items():
        if re.fullmatch(pattern, word):
            return unit
    return None


def plausible(values: NDArray[np.float64]) -> bool:
    """Tell whether an imaging spectrometer could have these wavelengths (nm)."""
    known = values[np.isfinite(values)]
    return known.size > 0 and bool(np.all((known >= _SHORTEST) & (known <= _LONGEST)))


def decide_unit(values: NDArray[np.float64], stated: str | None, guesses: list[str]) -> str | None:
    """Return the unit of wavelengths: the stated one if it makes sense, else the one that does.

    Returns None, with a note, if no unit makes the values wavelengths.
    """
    unit = known_unit(stated)
    if unit == "index":
        guesses.append("Wavelength units are 'Index': the bands have no wavelengths.")
        return None
    if unit is not None and plausible(to_nanometres(values, unit)):
        return unit
    for likely in (NANOMETRES, MICROMETRES):
        if plausible(to_nanometres(values, likely)):
            said = f"The wavelength units are given as '{stated}'" if stated else "No units given"
            guesses.append(
                f"{said}, but values from {np.nanmin(values):g} to {np.nanmax(values):g} "
                f"can only be {likely}: read as {likely}."
                if unit
                else f"{said}; values from {np.nanmin(values):g} to {np.nanmax(values):g} "
                f"were read as {likely}."
            )
            return likely
    guesses.append("The wavelengths in the file are in no range of light: ignored.")
    return None


def to_nanometres(values: NDArray[np.float64], unit: str) -> NDArray[np.float64]:
    """Return wavelengths in nm.

    Examples
    --------
    >>> to_nanometres(np.array([0.45, 2.5]), "um")
    array([ 450., 2500.])
    """
    with np.errstate(divide="ignore"):
        if unit == "1/cm":
            return 1e7 / values
        if unit in _LIGHT_NM:
            return _LIGHT_NM[unit] / values
    if unit == MICROMETRES:  # 0.45 um is 450 nm, not 450.00000000000006
        return np.round(values * 1e3, 9)
    return values * _PER_UNIT[unit]


def width_in_nanometres(
    width: NDArray[np.float64], centre: NDArray[np.float64], unit: str
) -> NDArray[np.float64]:
    """Return band widths in nm; `centre` in nm matters where the unit is a frequency."""
    if unit == "1/cm":
        return width * centre**2 / 1e7
    if unit in _LIGHT_NM:
        return width * centre**2 / _LIGHT_NM[unit]
    return to_nanometres(width, unit)


def from_band_names(names: Sequence[str]) -> tuple[NDArray[np.float64], str | None] | None:
    """Return the numbers inside band names and their unit, if every name has one.

    A number with a unit counts first, then the last one in brackets, then a name that is a
    number, then the only decimal number in a name. Running numbers (1, 2, 3) are no wavelengths.

    Examples
    --------
    >>> from_band_names(["Band 1 (450.5 nm)", "Band 2 (460 nm)"])
    (array([450.5, 460. ]), 'nm')
    >>> from_band_names(["Band 1", "Band 2"]) is None
    True
    """
    if not names:
        return None
    with_unit = [_WITH_UNIT.search(name) for name in names]
    if all(with_unit):
        units = {known_unit(match.group(2)) for match in with_unit if match}
        numbers = np.array([float(match.group(1)) for match in with_unit if match])
        return (numbers, units.pop()) if len(units) == 1 else None
    for pattern in (_BRACKETED, _ALONE, _ONLY_DECIMAL):
        matches = [pattern.fullmatch(name) for name in names]
        if all(matches):
            numbers = np.array([float(match.group(1)) for match in matches if match])
            return (numbers, None) if _could_be_wavelengths(numbers, pattern) else None
    return None


def _could_be_wavelengths(numbers: NDArray[np.float64], pattern: re.Pattern[str]) -> bool:
    whole = bool(np.all(numbers == np.round(numbers)))
    running = whole and bool(np.all(np.diff(numbers) == 1))
    if whole and (running or numbers.size == 1) and numbers.min() < 300:
        return False
    if plausible(numbers):
        return True
    # "v1.2" is a version, not 1.2 micrometres
    return pattern is not _ONLY_DECIMAL and not whole and plausible(numbers * 1e3)
