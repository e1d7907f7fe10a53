"""What a file says about its bands: wavelength, width, which are good, and how they are scaled."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hsreject.errors import FileError
from hsreject.io import envi_header, wavelengths

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

_UNITED = re.compile(r"\s*([-+\d.eE]+)\s*(\D*?)\s*")
# Tag names without case and punctuation: "CENTRAL_WAVELENGTH_UM" reads "centralwavelengthum".
_WAVELENGTH_TAG = re.compile(
    r"(?:cent(?:er|re|ral))?wavelengths?(?:cent(?:er|re)(?:ofband)?)?(nm|um)?"
)
_WIDTH_TAG = re.compile(r"(?:fwhm|bandwidth)(?:ofband)?(nm|um)?")
_UNITS_TAG = re.compile(r"wavelengths?units?()")
_GOOD_TAG = re.compile(r"(?:bbl|goodband)()")


@dataclass(frozen=True)
class BandInfo:
    """The bands of a file, one value each; None where the file says nothing.

    Parameters
    ----------
    wavelength, fwhm : array of float or None
        Centre and full width at half maximum, nm.
    good : array of bool or None
        False for the bands that the file calls bad.
    guesses : tuple of str
        What was decided without the file saying it.
    """

    wavelength: NDArray[np.float64] | None = None
    fwhm: NDArray[np.float64] | None = None
    good: NDArray[np.bool_] | None = None
    guesses: tuple[str, ...] = ()


@dataclass(frozen=True)
class BandSources:
    """The places of a file that may speak of its bands, and the words found there.

    Parameters
    ----------
    where : str
        What error messages call the file.
    n_bands : int
        How many bands the pixels have.
    fields : mapping of str to str
        ENVI fields: from a header, or from the ENVI metadata domain of another format.
    band_tags : sequence of mappings
        Tags of each band.
    names : sequence of str
        Names of each band.
    """

    where: str
    n_bands: int
    fields: Mapping[str, str] = field(default_factory=dict)
    band_tags: Sequence[Mapping[str, str]] = ()
    names: Sequence[str] = ()


@dataclass(frozen=True)
class _Stated:
    """Numbers as they stand in the file, with the unit it states."""

    centre: NDArray[np.float64]
    unit: str | None
    width: NDArray[np.float64] | None = None
    width_unit: str | None = None


def band_info(sources: BandSources) -> BandInfo:
    """Return what a file says about its bands.

    Wavelengths come from the first place that has them: the ENVI field `wavelength`, tags of each
    band, numbers inside the band names.
    """
    guesses: list[str] = []
    good = _numbers(sources, "bbl")
    if good is None:
        good = _tag_numbers(sources, _GOOD_TAG)[0]
    flags = None if good is None else ~(good <= 0)
    if flags is not None and not flags.any():
        raise FileError(
            f"{sources.where} calls every band bad (bbl is 0 in all). Correct it, or remove it."
        )
    readers: tuple[Callable[[BandSources, list[str]], _Stated | None], ...] = (
        _from_fields,
        _from_tags,
        _from_names,
    )
    for read in readers:
        stated = read(sources, guesses)
        if stated is None:
            continue
        known = _without_zeros(stated.centre, guesses)
        unit = wavelengths.decide_unit(known, stated.unit, guesses)
        if unit is None:
            continue
        centre = wavelengths.to_nanometres(known, unit)
        width = None
        if stated.width is not None:
            width_unit = stated.width_unit or unit
            width = wavelengths.width_in_nanometres(stated.width, centre, width_unit)
        return BandInfo(centre, width, flags, tuple(guesses))
    return BandInfo(good=flags, guesses=tuple(guesses))


def _without_zeros(centre: NDArray[np.float64], guesses: list[str]) -> NDArray[np.float64]:
    """Return wavelengths, unknown (NaN) where they are 0: some sensors leave out bands that way."""
    zero = centre <= 0
    if not zero.any() or zero.all():
        return centre
    guesses.append(
        f"{int(zero.sum())} of {centre.size} bands have the wavelength 0: read as unknown (NaN)."
    )
    return np.where(zero, np.nan, centre)


def _from_fields(sources: BandSources, guesses: list[str]) -> _Stated | None:
    centre = _numbers(sources, "wavelength")
    if centre is None:
        return None
    return _Stated(centre, sources.fields.get("wavelength units"), _numbers(sources, "fwhm"))


def _from_tags(sources: BandSources, guesses: list[str]) -> _Stated | None:
    centre, unit = _tag_numbers(sources, _WAVELENGTH_TAG)
    if centre is None:
        return None
    if np.isnan(centre).any():
        guesses.append(
            f"{int(np.isnan(centre).sum())} of {sources.n_bands} bands have no wavelength tag: "
            "their wavelength is NaN."
        )
    width, width_unit = _tag_numbers(sources, _WIDTH_TAG)
    if unit is None:
        words = (_tag(tags, _UNITS_TAG) for tags in sources.band_tags)
        unit = next((word[0] for word in words if word is not None), None)
    return _Stated(centre, unit, width, wavelengths.known_unit(width_unit))


def _from_names(sources: BandSources, guesses: list[str]) -> _Stated | None:
    found = wavelengths.from_band_names(sources.names)
    if found is None:
        return None
    guesses.append("Wavelengths were read from numbers inside the band names.")
    unit = found[1] or sources.fields.get("wavelength units")
    return _Stated(found[0], unit, _numbers(sources, "fwhm"))


def _numbers(sources: BandSources, name: str) -> NDArray[np.float64] | None:
    """Return the numbers of an ENVI list field, which must be one a band."""
    numbers = envi_header.band_numbers(
        sources.fields, name, n_bands=sources.n_bands, where=sources.where
    )
    return None if numbers is None else np.array(numbers)


def _tag_numbers(
    sources: BandSources, pattern: re.Pattern[str]
) -> tuple[NDArray[np.float64] | None, str | None]:
    """Return a number a band from tags named like `pattern` (NaN where missing), and its unit."""
    found = [_tag(tags, pattern) for tags in sources.band_tags]
    if not any(found):
        return None, None
    unit = None
    numbers = np.full(sources.n_bands, np.nan)
    for band, word in enumerate(found):
        if word is None:
            continue
        match = _UNITED.fullmatch(word[0])
        numbers[band] = envi_header.number(
            match.group(1) if match else word[0], name="band tags", where=sources.where
        )
        unit = unit or word[1] or (match.group(2) if match else None) or None
    return numbers, unit


def _tag(tags: Mapping[str, str], pattern: re.Pattern[str]) -> tuple[str, str | None] | None:
    """Return the value of the tag named like `pattern` and the unit in its name, if any."""
    for name, value in tags.items():
        match = pattern.fullmatch(re.sub(r"[^a-z]", "", name.lower()))
        if match and value.strip():
            return value.strip(), match.group(1) or None
    return None
