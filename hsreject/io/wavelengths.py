"""What a file says of its bands: wavelength and width in nm, and which of them are good."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hsreject.io.rasters import envi

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from hsreject.io.rasters.raster import RasterInfo

_UNITS = {"nm": r"nm|nanomet(?:er|re)s?", "um": r"[uµμ]m|microns?|micromet(?:er|re)s?"}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
# Wavelengths inside band names.
_WITH_UNIT = re.compile(rf"({_NUMBER})\s*({_UNITS['nm']}|{_UNITS['um']})(?![a-z])", re.IGNORECASE)
_BRACKETED = re.compile(rf".*[(\[]\s*({_NUMBER})\s*[)\]].*")
_ALONE = re.compile(rf"\s*({_NUMBER})\s*")
_NAMED = re.compile(r"[a-z][a-z _-]*?[ _-]?(\d{3,4})", re.IGNORECASE)
_ONLY_DECIMAL = re.compile(r"[^.]*?(?<!\d)(\d+\.\d+)[^.]*")
# Tag names without case and punctuation: "CENTRAL_WAVELENGTH_UM" reads "centralwavelengthum".
_WAVELENGTH_TAG = r"(?:cent(?:er|re|ral))?wavelengths?(?:cent(?:er|re)(?:ofband)?)?(nm|um)?"
_WIDTH_TAG = r"(?:fwhm|bandwidth)(?:ofband)?(nm|um)?"
_UNITS_TAG, _GOOD_TAG = r"wavelengths?units?()", r"(?:bbl|goodband)()"
_NUMBER_IN_TAG = re.compile(r"\s*([-+\d.eE]+)\s*(\D*?)\s*")


@dataclass(frozen=True)
class BandInfo:
    """The bands of a file, one value each; None where the file says nothing."""

    wavelength: NDArray[np.float64] | None = None  # centre, nm
    fwhm: NDArray[np.float64] | None = None  # full width at half maximum, nm
    good: NDArray[np.bool_] | None = None  # False for the bands that the file calls bad
    notes: tuple[str, ...] = ()  # what was decided without the file saying it


def band_info(info: RasterInfo) -> BandInfo:
    """Return what a raster says about its bands.

    Wavelengths come from the first place that has them: the ENVI field `wavelength`, tags of each
    band, numbers inside the band names.
    """
    flags, bands, notes = _listed(info, "bbl"), BandInfo(), list[str]()
    for read in (_from_list, _from_tags, _from_names):
        if bands.wavelength is None:
            bands = read(info)
            notes += bands.notes
    if flags is None:
        flags = _tagged(info, _GOOD_TAG)[0]
    light = ~np.array(info.alpha)
    good = light if flags is None else ~(flags <= 0) & light
    stated_good = flags is not None or not light.all()
    return replace(bands, good=good if stated_good else None, notes=tuple(notes))


def nanometres(
    centre: NDArray[np.float64],
    unit: str | None,
    width: NDArray[np.float64] | None = None,
    width_unit: str | None = None,
) -> BandInfo:
    """Return wavelengths and widths in nm; None where they are not those of light in any unit.

    Some files mark bands whose wavelength is unknown by 0.
    """
    unknown, notes = (centre <= 0) | np.isinf(centre), list[str]()
    if unknown.any() and not unknown.all():
        centre = np.where(unknown, np.nan, centre)
        notes.append(
            f"{int(unknown.sum())} of {centre.size} bands have the wavelength 0 or an infinite "
            "one: read as unknown (NaN)."
        )
    stated = _unit_of(unit)
    if stated is None and (unit or "").strip().lower() not in {"", "unknown"}:
        notes.append(f"The wavelength units '{unit}' are neither nm nor um: not used.")
        return BandInfo(notes=tuple(notes))
    likely = next((u for u in (stated, *_UNITS) if u and _plausible(_in_nm(centre, u))), None)
    if likely is None:
        notes.append("The wavelengths in the file are not those of light in any unit: ignored.")
        return BandInfo(notes=tuple(notes))
    if likely != stated:
        given = f"given as '{unit}'" if unit else "not given"
        notes.append(
            f"The wavelength units are {given}; values from {np.nanmin(centre):g} to "
            f"{np.nanmax(centre):g} were read as {likely}."
        )
    if width is not None:
        width = _in_nm(width, _unit_of(width_unit) or likely)
    return BandInfo(_in_nm(centre, likely), width, notes=tuple(notes))


def _unit_of(text: str | None) -> str | None:
    """Return the unit that a word stands for, or None."""
    word = (text or "").strip().lower()
    return next((unit for unit, words in _UNITS.items() if re.fullmatch(words, word)), None)


def _in_nm(values: NDArray[np.float64], unit: str) -> NDArray[np.float64]:
    # 0.45 um is 450 nm, not 450.00000000000006
    return np.round(values * 1e3, 9) if unit == "um" else values


def _plausible(values: NDArray[np.float64]) -> bool:
    """Tell whether an imaging spectrometer could have these wavelengths (nm)."""
    finite = values[np.isfinite(values)]
    # from the ultraviolet to the thermal infrared
    return finite.size > 0 and bool(np.all((finite >= 100) & (finite <= 100_000)))


# The places where a raster may have them.


def _from_list(info: RasterInfo) -> BandInfo:
    centre = _listed(info, "wavelength")
    if centre is None:
        return BandInfo()
    return nanometres(centre, info.fields.get("wavelength units"), _listed(info, "fwhm"))


def _from_tags(info: RasterInfo) -> BandInfo:
    centre, unit = _tagged(info, _WAVELENGTH_TAG)
    if centre is None:
        return BandInfo()
    stated = (_tag(tags, _UNITS_TAG) for tags in info.tags)
    unit = unit or next((tag[0] for tag in stated if tag is not None), None)
    bands = nanometres(centre, unit, *_tagged(info, _WIDTH_TAG))
    lacking = int(np.isnan(centre).sum())
    note = f"{lacking} of {info.n_bands} bands have no wavelength tag: their wavelength is NaN."
    return replace(bands, notes=(note, *bands.notes)) if lacking else bands


def _from_names(info: RasterInfo) -> BandInfo:
    # GDAL puts more than the name into the descriptions of an ENVI file
    names = envi.items(info.header, "band names") if info.header else info.names
    inside = _numbers_in_names(names) if len(names) == info.n_bands else None
    if inside is None:
        return BandInfo()
    unit = inside[1] or info.fields.get("wavelength units")
    bands = nanometres(inside[0], unit, _listed(info, "fwhm"))
    note = "Wavelengths were read from numbers inside the band names."
    return replace(bands, notes=(note, *bands.notes))


def _listed(info: RasterInfo, name: str) -> NDArray[np.float64] | None:
    """Return the numbers of an ENVI list field, which must be one per band."""
    return envi.band_numbers(info.fields, name, n_bands=info.n_bands, where=info.described_in)


def _tagged(info: RasterInfo, pattern: str) -> tuple[NDArray[np.float64] | None, str | None]:
    """Return one number per band, NaN where it has no tag named like `pattern`, and the unit."""
    tagged = {band: tag for band, tags in enumerate(info.tags) if (tag := _tag(tags, pattern))}
    if info.header or not tagged:  # beside a header, tags are GDAL's copy of it
        return None, None
    numbers, unit = np.full(info.n_bands, np.nan), None
    for band, (text, unit_in_name) in tagged.items():
        match = _NUMBER_IN_TAG.fullmatch(text)
        number, unit_in_value = match.groups() if match else (text, None)
        numbers[band] = envi.number(number, name="band tags", where=info.described_in)
        unit = unit or unit_in_name or unit_in_value or None
    return numbers, unit


def _tag(tags: Mapping[str, str], pattern: str) -> tuple[str, str | None] | None:
    """Return the value of the tag named like `pattern` and the unit in its name, if any."""
    for name, value in tags.items():
        match = re.fullmatch(pattern, re.sub(r"[^a-z]", "", name.lower()))
        if match and value.strip():
            return value.strip(), match[1] or None
    return None


def _numbers_in_names(names: Sequence[str]) -> tuple[NDArray[np.float64], str | None] | None:
    """Return the numbers inside band names and their unit, if every name has one."""
    for pattern in (_WITH_UNIT, _BRACKETED, _ALONE, _ONLY_DECIMAL, _NAMED):
        look = pattern.search if pattern is _WITH_UNIT else pattern.fullmatch
        matches = [match for name in names if (match := look(name))]
        if len(matches) < len(names):
            continue
        numbers = np.array([float(match[1]) for match in matches])
        if pattern is _WITH_UNIT:
            units = {_unit_of(match[2]) for match in matches}
            return (numbers, units.pop()) if len(units) == 1 else None
        return (numbers, None) if _could_be_wavelengths(numbers, pattern) else None
    return None


def _could_be_wavelengths(numbers: NDArray[np.float64], pattern: re.Pattern[str]) -> bool:
    whole, steps = bool(np.all(numbers == np.round(numbers))), np.diff(numbers)
    if whole and np.all(steps == 1) and numbers.min() < 300:
        return False  # 1, 2, 3 and a lone 7 count bands
    if pattern is _NAMED:  # "Band_503", but not the numbers of some bands
        return bool(numbers.min() >= 300 and numbers.max() <= 2600 and np.all(steps > 1))
    # "v1.2" is a version, not 1.2 micrometres
    small = pattern is not _ONLY_DECIMAL and not whole and _plausible(numbers * 1e3)
    return _plausible(numbers) or small
