"""Makes states from other processes safe to keep and to show: bounded, cleaned, never trusted."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.model.ranks import MOST_RANKS, RankState

T = TypeVar("T")
_MOST_PIDS = 1 << 31
_TEXT, _ITEMS = 2000, 4096
"""Maximum characters of a text and items of a list or mapping; lists of numbers may have one for each rank."""
_BOUNDS = {
    "rank": MOST_RANKS, "world_size": MOST_RANKS + 1, "local_rank": MOST_RANKS, "local_world_size": MOST_RANKS + 1,
    "pid": _MOST_PIDS, "parent": _MOST_PIDS,
}  # fmt: skip


def drop_impossible(state: RankState) -> RankState:
    """Drop impossible numbers from the state: others are used as counts, and as process ids to signal."""
    absurd = {name: None for name, most in _BOUNDS.items() if (value := getattr(state, name)) and not 0 <= value < most}
    return msgspec.structs.replace(state, **absurd) if absurd else state


def tidy(state: RankState) -> RankState:
    """Clean and bound every text of the state, and bound every list."""
    return clean_struct(drop_impossible(state))


def clean_struct(value: T) -> T:
    """Clean and bound every text of a struct of texts, numbers and lists, and bound every list."""
    return msgspec.convert(_clean_value(msgspec.to_builtins(value)), type(value))


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {_text(name): _clean_value(inner) for name, inner in list(value.items())[:_ITEMS]}
    if isinstance(value, list | tuple):
        most = MOST_RANKS if value and isinstance(value[0], int) else _ITEMS
        return [_clean_value(inner) for inner in value[:most]]
    return value


@lru_cache(maxsize=16_384)  # ranks send equal texts
def _text(value: str) -> str:
    return clean(value[:_TEXT])
