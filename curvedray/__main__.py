"""`python -m curvedray` is the `curvedray` command."""

from curvedray.cli import main

main()
