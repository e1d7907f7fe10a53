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

_NANOMETRES, _MICROMETRES = "nm", "um"
_UNIT_WORDS = {
    _NANOMETRES: r"nm|nanomet(?:er|re)s?",
    _MICROMETRES: r"[uµμ]m|microns?|micromet(?:er|re)s?",
}

# Numbers inside band names.
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WITH_UNIT = re.compile(
    rf"({_NUMBER})\s*({_UNIT_WORDS[_NANOMETRES]}|{_UNIT_WORDS[_MICROMETRES]})(?![a-z])",
    re.IGNORECASE,
)
_BRACKETED = re.compile(rf".*[(\[]\s*({_NUMBER})\s*[)\]].*")
_ALONE = re.compile(rf"\s*({_NUMBER})\s*")
_NAMED = re.compile(r"[a-z][a-z _-]*?[ _-]?(\d{3,4})", re.IGNORECASE)
_ONLY_DECIMAL = re.compile(r"[^.]*?(?<!\d)(\d+\.\d+)[^.]*")

# Tag names without case and punctuation: "CENTRAL_WAVELENGTH_UM" reads "centralwavelengthum".
_WAVELENGTH_TAG = re.compile(
    r"(?:cent(?:er|re|ral))?wavelengths?(?:cent(?:er|re)(?:ofband)?)?(nm|um)?"
)
_WIDTH_TAG = re.compile(r"(?:fwhm|bandwidth)(?:ofband)?(nm|um)?")
_UNITS_TAG = re.compile(r"wavelengths?units?()")
_GOOD_TAG = re.compile(r"(?:bbl|goodband)()")
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
    bands, notes = BandInfo(), list[str]()
    for read in (_from_fields, _from_tags, _from_names):
        if bands.wavelength is None and (stated := read(info)) is not None:
            bands = stated
            notes += stated.notes
    return replace(bands, good=_good_bands(info), notes=tuple(notes))


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
    used, note = _unit_of(centre, unit)
    notes += [note] if note else []
    if used is None:
        return BandInfo(notes=tuple(notes))
    centre = _to_nanometres(centre, used)
    if width is not None:
        width = _to_nanometres(width, _known_unit(width_unit) or used)
    return BandInfo(centre, width, notes=tuple(notes))


def _good_bands(info: RasterInfo) -> NDArray[np.bool_] | None:
    flags = _field_numbers(info, "bbl")
    if flags is None:
        flags = _tag_numbers(info, _GOOD_TAG)[0]
    good = None if flags is None else ~(flags <= 0)
    light = np.array([not band.alpha for band in info.bands])
    if light.all():
        return good
    return light if good is None else good & light


def _from_fields(info: RasterInfo) -> BandInfo | None:
    centre = _field_numbers(info, "wavelength")
    if centre is None:
        return None
    return nanometres(centre, info.fields.get("wavelength units"), _field_numbers(info, "fwhm"))


def _from_tags(info: RasterInfo) -> BandInfo | None:
    centre, unit = _tag_numbers(info, _WAVELENGTH_TAG)
    if centre is None:
        return None
    if unit is None:
        stated = (_tag(band.tags, _UNITS_TAG) for band in info.bands)
        unit = next((tag[0] for tag in stated if tag is not None), None)
    bands = nanometres(centre, unit, *_tag_numbers(info, _WIDTH_TAG))
    lacking = int(np.isnan(centre).sum())
    note = f"{lacking} of {info.n_bands} bands have no wavelength tag: their wavelength is NaN."
    return replace(bands, notes=(note, *bands.notes)) if lacking else bands


def _from_names(info: RasterInfo) -> BandInfo | None:
    if info.source.fields:  # GDAL puts more than the name into the descriptions of an ENVI file
        names = envi.items(info.source.fields, "band names")
    else:
        names = [band.name for band in info.bands]
    inside = _numbers_in_names(names) if len(names) == info.n_bands else None
    if inside is None:
        return None
    unit = inside[1] or info.fields.get("wavelength units")
    bands = nanometres(inside[0], unit, _field_numbers(info, "fwhm"))
    note = "Wavelengths were read from numbers inside the band names."
    return replace(bands, notes=(note, *bands.notes))


def _field_numbers(info: RasterInfo, name: str) -> NDArray[np.float64] | None:
    """Return the numbers of an ENVI list field, which must be one per band."""
    where = info.source.described_in
    return envi.band_numbers(info.fields, name, n_bands=info.n_bands, where=where)


def _tag_numbers(
    info: RasterInfo, pattern: re.Pattern[str]
) -> tuple[NDArray[np.float64] | None, str | None]:
    """Return one number per band, NaN where it has no tag named like `pattern`, and the unit."""
    tags = [_tag(band.tags, pattern) for band in info.bands]
    if info.source.fields or not any(tags):  # beside a header, tags are GDAL's copy of it
        return None, None
    unit = None
    numbers = np.full(info.n_bands, np.nan)
    for band, tag in enumerate(tags):
        if tag is None:
            continue
        text, unit_in_name = tag
        match = _NUMBER_IN_TAG.fullmatch(text)
        number, unit_in_value = match.groups() if match else (text, None)
        numbers[band] = envi.number(number, name="band tags", where=info.source.described_in)
        unit = unit or unit_in_name or unit_in_value or None
    return numbers, unit


def _tag(tags: Mapping[str, str], pattern: re.Pattern[str]) -> tuple[str, str | None] | None:
    """Return the value of the tag named like `pattern` and the unit in its name, if any."""
    for name, value in tags.items():
        match = pattern.fullmatch(re.sub(r"[^a-z]", "", name.lower()))
        if match and value.strip():
            return value.strip(), match.group(1) or None
    return None


def _numbers_in_names(names: Sequence[str]) -> tuple[NDArray[np.float64], str | None] | None:
    """Return the numbers inside band names and their unit, if every name has one."""
    with_unit = [_WITH_UNIT.search(name) for name in names]
    if all(with_unit):
        units = {_known_unit(match.group(2)) for match in with_unit if match}
        numbers = np.array([float(match.group(1)) for match in with_unit if match])
        return (numbers, units.pop()) if len(units) == 1 else None
    for pattern in (_BRACKETED, _ALONE, _ONLY_DECIMAL, _NAMED):
        matches = [pattern.fullmatch(name) for name in names]
        if all(matches):
            numbers = np.array([float(match.group(1)) for match in matches if match])
            return (numbers, None) if _could_be_wavelengths(numbers, pattern) else None
    return None


def _could_be_wavelengths(numbers: NDArray[np.float64], pattern: re.Pattern[str]) -> bool:
    whole = bool(np.all(numbers == np.round(numbers)))
    if whole and np.all(np.diff(numbers) == 1) and numbers.min() < 300:
        return False  # 1, 2, 3 and a lone 7 count bands
    if pattern is _NAMED:  # "Band_503", but not the numbers of some bands
        steps = np.diff(numbers)
        return bool(numbers.min() >= 300 and numbers.max() <= 2600 and np.all(steps > 1))
    if _plausible(numbers):
        return True
    # "v1.2" is a version, not 1.2 micrometres
    return pattern is not _ONLY_DECIMAL and not whole and _plausible(numbers * 1e3)


def _known_unit(text: str | None) -> str | None:
    """Return the unit that a word stands for, or None."""
    word = (text or "").strip().lower()
    matching = (unit for unit, words in _UNIT_WORDS.items() if re.fullmatch(words, word))
    return next(matching, None)


def _plausible(values: NDArray[np.float64]) -> bool:
    """Tell whether an imaging spectrometer could have these wavelengths (nm)."""
    finite = values[np.isfinite(values)]
    # from the ultraviolet to the thermal infrared
    return finite.size > 0 and bool(np.all((finite >= 100) & (finite <= 100_000)))


def _unit_of(values: NDArray[np.float64], stated: str | None) -> tuple[str | None, str]:
    """Return the unit of wavelengths, the stated one if it makes sense, and what to note of it."""
    unit = _known_unit(stated)
    if unit is None and (stated or "").strip().lower() not in {"", "unknown"}:
        return None, f"The wavelength units '{stated}' are neither nm nor um: not used."
    if unit is not None and _plausible(_to_nanometres(values, unit)):
        return unit, ""
    for likely in (_NANOMETRES, _MICROMETRES):
        if _plausible(_to_nanometres(values, likely)):
            statement = (
                f"The wavelength units are given as '{stated}'" if stated else "No units given"
            )
            span = f"values from {np.nanmin(values):g} to {np.nanmax(values):g}"
            but = f", but {span} can only be {likely}: read" if unit else f"; {span} were read"
            return likely, f"{statement}{but} as {likely}."
    return None, "The wavelengths in the file are not those of light in any unit: ignored."


def _to_nanometres(values: NDArray[np.float64], unit: str) -> NDArray[np.float64]:
    # 0.45 um is 450 nm, not 450.00000000000006
    return np.round(values * 1e3, 9) if unit == _MICROMETRES else values
