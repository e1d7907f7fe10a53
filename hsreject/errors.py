"""Exceptions and warnings of hsreject: one root, children that are also the matching builtin.

Every message says what was given, what was expected and how to fix it.
"""

import os
import re

_URL = re.compile(
    r"""\b(https?|s3|ftp):[/\\]+  # scheme, of which a path loses a slash
    (?:[^/\\\s?#]*@)?  # user and password
    ([^\s?]*)
    (?:\?\S*?(?=['")\].,;:]*(?:\s|$)))?  # query, up to the punctuation of the text around it
    """,
    re.IGNORECASE | re.VERBOSE,
)
# The hidden folder that an archive is unpacked into, up to the name of the archive.
_UNPACKED = re.compile(r"""(?:[a-z]:)?[/\\][^\s'"(]*\.partial\.unpacked\.\w+[/\\]""", re.IGNORECASE)


def shown(source: str | os.PathLike[str]) -> str:
    """Return a path, or a text that names some, as people may see it.

    User, password and query of a URL stay out: passwords and signatures do not belong into results,
    which are passed on. So does the folder that an archive is unpacked into. Control characters,
    which names in files may hold, become spaces: they would steer a terminal. Readers use the path
    itself.
    """
    text = _UNPACKED.sub("", _URL.sub(r"\1://\2", str(source)))
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


class HsrejectError(Exception):
    """Root of every error that hsreject raises on purpose.

    See Also
    --------
    hsreject.errors.HsrejectWarning : what does not stop the work.

    Examples
    --------
    >>> import hsreject as hr
    >>> try:
    ...     hr.open_scene("no_such_file.tif")
    ... except hr.HsrejectError as error:
    ...     print(type(error).__name__, isinstance(error, OSError))
    FileError True
    """

    def __str__(self) -> str:
        """Return the message as people may see it."""
        return shown(super().__str__())


class InputError(HsrejectError, ValueError):
    """An argument, array or table that does not fit what the function needs."""


class FileError(HsrejectError, OSError):
    """A file that is missing, unreadable, damaged or already there."""


class ConfigError(HsrejectError, ValueError):
    """A configuration with an unknown key, a wrong type or a missing value."""


class HsrejectWarning(UserWarning):
    """Root of every warning that hsreject gives.

    See Also
    --------
    hsreject.errors.HsrejectError : what stops the work.

    Examples
    --------
    Where a guess should end the work, as in a script that nobody watches:

    >>> import warnings
    >>> import hsreject as hr
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", hr.HsrejectWarning)
    ...     cube, labels = hr.synthetic_scene()
    """

    def __str__(self) -> str:
        """Return the message as people may see it."""
        return shown(super().__str__())


class NotConvergedWarning(HsrejectWarning):
    """A solver stopped at its iteration limit, above its tolerance."""


class GuessWarning(HsrejectWarning):
    """A file did not say something that had to be guessed."""


class DriftWarning(HsrejectWarning):
    """A scene differs more from the training scene of a model than usual."""


class LostFeatureWarning(HsrejectWarning):
    """A vector feature gave no pixel of the scene."""


class EmptyClassWarning(HsrejectWarning):
    """A class was left without a training or a test pixel."""


class TrainingPixelsWarning(HsrejectWarning):
    """A map is evaluated on pixels that its classifier has learned from."""


class LargeSceneWarning(HsrejectWarning):
    """A scene is so large that its map takes minutes; the message says how many."""


class FewPolygonsWarning(HsrejectWarning):
    """Training pixels lie in so few polygons that confidences hold only for similar places."""


class UncheckedWarning(HsrejectWarning):
    """Something that is stated was not checked, because that would take too long."""
