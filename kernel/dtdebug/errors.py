"""Exit statuses of the command, and the error for wrong usage."""

from __future__ import annotations

NOTHING, FOUND, USAGE = 0, 1, 2
"""Exit statuses: of a result without findings, of one with findings, and of wrong usage or unreadable input."""


class UsageError(ValueError):
    """Wrong call or input; the text is the one line that the user sees."""
