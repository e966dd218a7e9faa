"""The `curvedray` command, also as `python -m curvedray`."""

import sys

from curvedray.extras import MissingExtra, needed


def main() -> None:
    """Run the command, or say in one sentence what to install for it."""
    try:
        needed("typer", "rich")
    except MissingExtra as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    from curvedray.cli import main as run

    run()


if __name__ == "__main__":
    main()
