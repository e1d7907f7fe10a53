"""Run the command line, as ``hsreject`` or ``python -m hsreject``."""

import os
import signal


def main() -> None:
    """Run the command line; a signal while its modules load ends it at once and silently."""
    # Nothing has been written yet, so there is nothing to tidy up. A handler set elsewhere, or by
    # nohup, stays. Before these lines Python itself is starting, and shows a traceback.
    defaults = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM)
        if (handler := signal.getsignal(number)) in {signal.default_int_handler, signal.SIG_DFL}
    }
    for number in defaults:
        signal.signal(number, lambda received, _frame: os._exit(128 + received))
    from hsreject.cli import main as run  # noqa: PLC0415

    try:
        for number, handler in defaults.items():
            signal.signal(number, handler)
        run()
    except KeyboardInterrupt:  # between two handlers, or on the way out
        os._exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
