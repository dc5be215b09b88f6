"""Learning notebooks: each shows a failure, explains and fixes it, and asks one question."""

from __future__ import annotations

from dtdebug.learn.answers import answer

__all__ = ["answer"]
