"""Exit statuses of the command, and the error for wrong usage."""

from __future__ import annotations

NOTHING, FOUND, USAGE = 0, 1, 2
"""Nothing found; something found; wrong usage, or no readable input."""


class UsageError(ValueError):
    """Wrong call or input; the text is the one line that the user sees."""
