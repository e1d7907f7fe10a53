"""Ctrl-C that is not lost."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


@contextmanager
def remembered_interrupts() -> Iterator[Callable[[], None]]:
    """Yield a function that raises KeyboardInterrupt once Ctrl-C was pressed.

    Python raises it at once as well, but drops it where that falls into a finaliser or a callback
    of compiled code: of forty presses while kernels were loaded, one was lost. Work that goes on
    all the same calls the function now and then, and ends. An error that follows is taken for the
    interrupt.
    """
    pressed = threading.Event()

    def press(number: int, frame: FrameType | None) -> None:
        pressed.set()
        raise KeyboardInterrupt

    def check() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield check  # never raises: whoever embeds the command line listens in their own way
        return
    tell_of_dropped = sys.unraisablehook

    def tell_of_others(dropped: UnraisableHookArgs) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            tell_of_dropped(dropped)

    signal.signal(signal.SIGINT, press)
    sys.unraisablehook = tell_of_others
    try:
        yield check
    except Exception:
        check()  # compiled code, such as that of h5py, may make another error of the interrupt
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = tell_of_dropped
