"""Masks secrets where a text is stored or shown, but not before it is read: a probable secret may explain the failure.

`plain` returns text to read in this process; `diagnose` and `masked` return what may be stored and shown. A cause
may quote part of a line without the name that marked a secret, so every value masked once is masked by value
everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from dtdebug.privacy import redact
from dtdebug.privacy.sanitize import plain
from dtdebug_taxonomy.diagnosis import diagnose as diagnosis
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.model.snapshot import Snapshot

__all__ = ["diagnose", "mask_snapshot", "plain"]

_READ = ("situation", "output", "source", "cell", "cells", "exception", "accounts", "verdict", "notes")
"""Parts of a snapshot that hold text as it was read; the other parts come from records, which hold no secrets."""
_SHORT, _LONG, _CUT = 4, 8, 6
"""Minimum length of a value masked as a separate word, of one masked anywhere, and of a piece left by truncation.
"""
_COMMON = re.compile(r"[\d.]{1,64}\Z|[A-Za-z]{1,12}\Z")
"""Values that also occur by chance; they are masked only if their context marks them."""

T = TypeVar("T")


def diagnose(
    knowledge: Knowledge,
    snapshot: Snapshot,
    answers: Mapping[str, str] | None = None,
    unknown: tuple[str, ...] = (),
    *,
    unasked: bool = False,
) -> Diagnosis:
    """Return the diagnosis of a snapshot with unmasked texts; the result holds no secrets."""
    found = diagnosis.diagnose(knowledge, snapshot, answers, unknown, unasked=unasked)
    values = _values(snapshot)
    return _without(found, values) if values else found


def mask_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without secrets; itself if it holds none."""
    values = _values(snapshot)
    if not values:
        return snapshot
    kinds = {field.name: field.type for field in msgspec.structs.fields(snapshot)}  # a tuple alone knows no records
    parts = {name: _without(part, values, kinds[name]) for name in _READ if (part := getattr(snapshot, name))}
    return msgspec.structs.replace(snapshot, **parts, later=tuple(_without(each, values) for each in snapshot.later))


def mask_record(record: T) -> T:
    """Return a record to store without secrets in any of its texts; itself if it holds none."""
    values = _values_of(record)
    return _without(record, values) if values else record


def _values(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the values to mask in the texts of a snapshot, longest first."""
    return _values_of([getattr(snapshot, name) for name in (*_READ, "later")])


def _values_of(record: object) -> tuple[str, ...]:
    found: set[str] = set()
    for text in dict.fromkeys(_texts(msgspec.to_builtins(record))):
        found |= _secrets(text)[1]
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def _texts(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return (value,)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for part in inner for text in _texts(part)]


@lru_cache(maxsize=4)  # an output is read when it is diagnosed, and when it is stored
def _of_long(text: str) -> tuple[str, frozenset[str]]:
    return redact.mask_secrets(text)


@lru_cache(maxsize=8192)  # ranks hold the same texts
def _of_short(text: str) -> tuple[str, frozenset[str]]:
    return redact.mask_secrets(text)


def _secrets(text: str) -> tuple[str, frozenset[str]]:
    return _of_long(text) if len(text) > 1_000 else _of_short(text)


def _without(value: T, values: Sequence[str], kind: Any = None) -> T:
    """Return the value, of this type if it is no record, with the secrets in all its texts masked."""
    made = _mask_texts(msgspec.to_builtins(value), _by_value(values), values)
    masked: T = msgspec.convert(made, kind or type(value), str_keys=True)
    return masked


def _mask_texts(value: object, known: re.Pattern[str] | None, values: Sequence[str]) -> object:
    if isinstance(value, str):
        text = _secrets(value)[0]
        text = known.sub(redact.MASK, text) if known is not None else text
        return _without_rest(text, values)
    if isinstance(value, dict):
        return {key: _mask_texts(inner, known, values) for key, inner in value.items()}
    return [_mask_texts(inner, known, values) for inner in value] if isinstance(value, list | tuple) else value


def _by_value(values: Sequence[str]) -> re.Pattern[str] | None:
    """Return a pattern of secrets without context, also for wrapped or joined lines; short ones match whole words."""
    pieces = {piece.strip() for value in values for piece in (*value.split("\n"), " ".join(value.split()))}
    shapes = [
        re.escape(p) if len(p) >= _LONG else rf"(?<![\w.]){re.escape(p)}(?![\w.])"
        for p in sorted(pieces, key=lambda piece: (-len(piece), piece))
        if len(p) >= _SHORT and not _COMMON.match(p)
    ]
    return re.compile("|".join(shapes)) if shapes else None


def _without_rest(text: str, values: Sequence[str]) -> str:
    """Mask part of a secret at the end of a truncated text."""
    body = text.rstrip(".")
    for value in values:
        if value[:_CUT] not in body[-512:]:
            continue
        for size in range(min(len(value), len(body), 512) - 1, _CUT - 1, -1):
            if body.endswith(value[:size]):
                return body[: len(body) - size] + redact.MASK
    return text
