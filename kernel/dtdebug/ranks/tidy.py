"""Makes what another process said of itself safe to keep and to show: bounded, cleaned, never trusted."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from dtdebug.clean import clean
from dtdebug_taxonomy.ranks import RankState

_TEXT, _ITEMS = 2000, 4096
"""Characters of a text and items of a list or mapping that are kept."""


def tidy(state: RankState) -> RankState:
    """The state with every text cleaned and bounded, and every list bounded."""
    return msgspec.convert(_tidied(msgspec.to_builtins(state)), RankState)


def _tidied(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {_text(name): _tidied(inner) for name, inner in list(value.items())[:_ITEMS]}
    if isinstance(value, list | tuple):
        return [_tidied(inner) for inner in value[:_ITEMS]]
    return value


@lru_cache(maxsize=16_384)  # ranks say the same things
def _text(value: str) -> str:
    return clean(value[:_TEXT])
