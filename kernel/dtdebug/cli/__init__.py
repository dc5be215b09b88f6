"""The command line: the command itself, and a module for each of its sub-commands."""

from __future__ import annotations

from typing import NoReturn


def run() -> NoReturn:
    """Entry point of the command: ends the process with its status."""
    from dtdebug.cli import main

    main.run()
