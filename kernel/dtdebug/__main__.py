"""Entry point of the `dtdebug` command, also as `python -m dtdebug`."""

from __future__ import annotations

from typing import NoReturn


def run() -> NoReturn:
    """Run the command; Ctrl-C while it is being imported ends it as quietly as later."""
    try:
        from dtdebug.cli import main
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    main.run()


if __name__ == "__main__":
    run()
