"""Plugins: parts from your own file or package, known by name in runs, training and maps."""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import entry_points
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.confidence import CONFIDENCES, Confidence
from hsreject.context.prior import Prior
from hsreject.context.priors import PRIORS
from hsreject.errors import ConfigError, HsrejectError
from hsreject.features import FEATURES
from hsreject.features.transformer import SceneTransformer
from hsreject.registry import Registry, nearest
from hsreject.rejection import REJECTORS, Rejector

GROUP = "hsreject.plugins"  # of entry points, under which an installed package names its plugin
PREFIX = "hsreject_plugin_"  # of the modules of plugin files, before the name of the file

_KINDS: tuple[tuple[type, Registry[Any]], ...] = (
    (Prior, PRIORS),
    (Rejector, REJECTORS),
    (Confidence, CONFIDENCES),
    (SceneTransformer, FEATURES),
)
_REGISTRIES = (*(registry for _, registry in _KINDS), CLASSIFIERS)
_loaded: dict[str, tuple[str, str]] = {}  # name of the module: file and source


def load_plugins(plugins: Iterable[str | PathLike[str]]) -> list[str]:
    r"""Load plugins, so that configurations and models can name their parts.

    A plugin is a Python file, or the name that an installed package has in the group of entry
    points ``hsreject.plugins``. Every prior, rejector, confidence, feature and classifier in it is
    known by the name of its class, in small letters with underscores (``MyRows`` is ``my_rows``),
    unless it registers them itself; a measure does so with :func:`hsreject.add_measure`. Its code
    runs, so load only what you trust. A file that has changed since is loaded anew.

    Parameters
    ----------
    plugins : iterable of str or path
        Files that end in ``.py``, or names of installed plugins.

    Returns
    -------
    list of str
        The names of the parts.

    See Also
    --------
    hsreject.run : takes them as ``plugins = ["my_prior.py"]``.
    hsreject.check_prior : says what is wrong with a prior.

    Examples
    --------
    >>> from pathlib import Path
    >>> import tempfile
    >>> import hsreject as hr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "strong.py")
    ...     _ = file.write_text("import hsreject as hr\nclass Strong(hr.VectorTV): pass")
    ...     hr.load_plugins([file])
    ['strong']
    """
    if isinstance(plugins, str | PathLike):
        plugins = [plugins]
    return [name for plugin in plugins for name in _enrolled(_module(plugin))]


def _module(plugin: object) -> ModuleType:
    """Return the module of a plugin file, or of an installed plugin."""
    if not isinstance(plugin, str | PathLike):
        raise ConfigError(f"A plugin must be a file or a name (got {plugin!r}).")
    path = Path(plugin)
    if path.suffix != ".py":
        points = {point.name: point for point in entry_points(group=GROUP)}
        if plugin not in points:
            raise ConfigError(
                f"There is no plugin '{plugin}'. Give a file that ends in .py, or one of those "
                f"that are installed: {', '.join(sorted(points)) or 'none'}."
                f"{nearest(str(plugin), list(points))}"
            )
        module = import_module(points[str(plugin)].module)
        _loaded[module.__name__] = str(plugin), ""
        return module
    try:
        origin = str(path.resolve()), path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The plugin '{path}' cannot be read: {error}. Check its path.") from None
    name = PREFIX + re.sub(r"\W", "_", path.stem)
    if _loaded.get(name) == origin:
        return sys.modules[name]
    _forget(name)
    module = ModuleType(name)
    module.__file__, source = origin
    sys.modules[name] = module  # dataclasses and pickle look it up
    try:
        exec(compile(source, origin[0], "exec"), vars(module))  # noqa: S102 (what a plugin is)
    except Exception as error:
        _forget(name)
        if isinstance(error, HsrejectError):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f"line {frame.lineno}, " for frame in frames if frame.filename == origin[0]]
        raise ConfigError(
            f"The plugin '{path}' fails: {''.join(lines[-1:])}{type(error).__name__}: {error}"
        ) from error
    cloudpickle.register_pickle_by_value(module)  # workers of a cluster do not have the file
    _loaded[name] = origin
    return module


def _enrolled(module: ModuleType) -> list[str]:
    """Return the names of a plugin's parts, registering those that are not registered yet."""
    classes = [part for part in vars(module).values() if inspect.isclass(part)]
    own: list[Any] = [part for part in classes if part.__module__ == module.__name__]
    for part in own:
        homes = [registry for kind, registry in _KINDS if issubclass(part, kind)]
        homes += [CLASSIFIERS] if hasattr(part, "fit") and hasattr(part, "predict_proba") else []
        if not homes or part.__name__.startswith("_") or part in homes[0].values():
            continue
        if inspect.isabstract(part):
            raise ConfigError(
                f"The {homes[0].kind} '{part.__name__}' of the plugin '{module.__file__}' lacks "
                f"{', '.join(sorted(part.__abstractmethods__))}. Write what is missing, or let its "
                "name begin with an underscore."
            )
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", part.__name__)
        homes[0].register(words.lower(), part)
    parts = [item for registry in _REGISTRIES for item in registry.items()]
    return [name for name, part in parts if part.__module__ == module.__name__]


def _forget(name: str) -> None:
    """Take the parts of a plugin that is loaded anew out of the registries."""
    _loaded.pop(name, None)
    sys.modules.pop(name, None)
    for registry in _REGISTRIES:
        registry.forget(name)


def is_loaded(type_name: str) -> bool:
    """Return whether a type, by its full name, comes from a plugin that was asked for."""
    return any(type_name.startswith(f"{module}.") for module in _loaded)


def known_as(type_name: str) -> str | None:
    """Return the full name that a class has in the plugin that was loaded, if one has it.

    The module of a plugin is named after its file, or is that of its package: the same plugin
    given in the other way has the same classes in another module.
    """
    name = type_name.rpartition(".")[2]
    homes = [
        home
        for home in _loaded
        if getattr(vars(sys.modules[home]).get(name), "__module__", None) == home
    ]
    return f"{homes[0]}.{name}" if len(homes) == 1 else None


def plugin_of(type_name: str) -> str | None:
    """Return which plugin, not loaded, a type probably comes from: a file, or an installed name."""
    package = type_name.partition(".")[0]
    if package.startswith(PREFIX):
        return f"{package.removeprefix(PREFIX)}.py"
    points = entry_points(group=GROUP)
    return next((point.name for point in points if point.module.split(".")[0] == package), None)
