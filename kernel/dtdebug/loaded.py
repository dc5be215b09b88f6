"""The notebook extension of this process: a place to look it up for modules that the extension itself stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dtdebug.extension import Extension

extension: Extension | None = None
"""Set by `%load_ext dtdebug`, None where that has not been run."""
