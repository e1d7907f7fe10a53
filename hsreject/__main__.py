"""Run the command line, as ``hsreject`` or ``python -m hsreject``."""

import os
import signal


def main() -> None:
    """Run the command line; Ctrl-C while its modules are loaded ends it at once and in silence."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # there is nothing to tidy up yet
    from hsreject.cli import main as run  # noqa: PLC0415

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
