"""Fingerprints: one short text that changes whenever any input of a computation does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr


def fingerprint(*parts: object) -> str:
    """Return the SHA-256 of arrays, numbers, texts and objects, as hexadecimal digits.

    Arrays count with type, shape and values, labelled arrays also with dimensions, coordinates and
    attributes; objects count with their class and state.

    Examples
    --------
    >>> fingerprint(1, "a") == fingerprint(1, "a"), fingerprint(1) == fingerprint(1.0)
    (True, False)
    """
    digest = hashlib.sha256()
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: Any, part: object) -> None:
    digest.update(f"<{type(part).__module__}.{type(part).__qualname__}>".encode())
    if isinstance(part, xr.DataArray):
        coords = {str(name): np.asarray(coord.values) for name, coord in part.coords.items()}
        _feed(digest, [part.dims, np.asarray(part.values), coords, part.attrs])
    elif isinstance(part, xr.Dataset):
        _feed(digest, {str(name): part[name] for name in part.data_vars})
    elif isinstance(part, np.ndarray) and part.dtype.kind in "OU":  # texts, of any storage
        _feed(digest, part.tolist())
    elif isinstance(part, np.ndarray):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    elif isinstance(part, tuple | list):
        digest.update(str(len(part)).encode())
        for item in part:
            _feed(digest, item)
    elif isinstance(part, Mapping):
        for key in sorted(part, key=repr):
            _feed(digest, key)
            _feed(digest, part[key])
    elif hasattr(part, "__dict__") and not isinstance(part, type):
        _feed(digest, vars(part))
    else:
        digest.update(repr(part).encode())
