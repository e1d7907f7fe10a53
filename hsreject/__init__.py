"""Land-cover maps from hyperspectral images that say where they do not know.

Every public name is imported on first use, so that ``import hsreject`` is quick and quiet. The stub
``__init__.pyi`` beside this file is the one list of them: type checkers and editors read it as it
is, and here it says which module a name comes from.
"""

__version__ = "0.3.0"


def __getattr__(name: str) -> object:
    """Read the stub when a public name is first asked for, and hand over to what it says."""
    import lazy_loader  # noqa: PLC0415  (not above: the command line should be up at once)

    attribute, names, everything = lazy_loader.attach_stub(__name__, __file__)
    globals().update(__getattr__=attribute, __dir__=names, __all__=everything)
    return everything if name == "__all__" else attribute(name)


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))
