"""Exit statuses of the command, and the error that is the user's: below all that use them."""

from __future__ import annotations

NOTHING, FOUND, USAGE = 0, 1, 2
"""Nothing found; something found; wrong usage, or nothing that could be read."""


class UsageError(ValueError):
    """The call or its input is wrong: the text is the one line that the user sees."""
