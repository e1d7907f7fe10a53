"""Run the command line as ``python -m hsreject``."""

from hsreject.cli import main

main()
