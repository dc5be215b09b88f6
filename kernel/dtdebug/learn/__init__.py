"""Learning notebooks: something fails, is read, explained and fixed, and one question is answered."""

from __future__ import annotations

from dtdebug.learn.answers import answer

__all__ = ["answer"]
