"""Land-cover maps from hyperspectral images that say where they do not know.

Every public name is imported on first use, so that ``import hsreject`` is quick and quiet. The stub
``__init__.pyi`` beside this file is the one list of them: type checkers and editors read it as it
is, and here it says which module a name comes from.
"""

import lazy_loader

__version__ = "0.3.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
