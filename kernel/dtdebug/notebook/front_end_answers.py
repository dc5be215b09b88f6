"""Merges a front end's complete answers into the session; answers missing since the last request are withdrawn.

Answers given elsewhere, as by `%dtdebug answer`, stay; of two answers to one question the later one counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from dtdebug.privacy.sanitize import mask, plain

if TYPE_CHECKING:
    from dtdebug.wizard.session import Session, UserStep

_WORDS = 4096
"""Maximum characters of the user's words."""


class FailedCell(msgspec.Struct, frozen=True, kw_only=True):
    """Failed cell, and everything that the user has answered about it so far."""

    cell: str = ""
    """Its source; if `output` and `ename` are empty too, the failure known to the extension is meant."""
    output: str = ""
    """Its output, with the traceback."""
    ename: str = ""
    evalue: str = ""
    situation: str = ""
    """User's description in plain words."""
    answers: dict[str, str] = {}
    unknown: tuple[str, ...] = ()
    """Questions that were put aside."""


def session_after(session: Session, now: FailedCell, before: FailedCell | None) -> Session:
    """Return the session after this request; `before` is the previous request of the same front end.

    Raises:
        ValueError: no such question or answer.

    """
    words, old_words = _words(now), _words(before) if before else ""
    old_answers, old_unknown = (before.answers, before.unknown) if before else ({}, ())
    if before is not None:
        session = _without(session, lambda step, text: _taken_back(step, text, now, before))
    if words and words != old_words and not _holds(session.snapshot.situation, words):
        session = session.describe(words)
    for key, value in now.answers.items():
        session = _after(session, session.answer(key, value), key, new=old_answers.get(key) != value)
    for key in now.unknown:
        if key not in now.answers:
            session = _after(session, session.dont_know(key), key, new=key not in old_unknown)
    return session


def _holds(situation: str, words: str) -> bool:
    """True if the words are in the description as separate lines, possibly masked, as a stored session has them."""
    return any(f"\n{told}\n" in f"\n{situation}\n" for told in (words, mask(words)))


def _words(asked: FailedCell) -> str:
    return plain(asked.situation[:_WORDS].encode("utf-8", "replace").decode()).strip()


def _after(session: Session, stepped: Session, key: str, *, new: bool) -> Session:
    """Return the session after a step that is new or missing from it; a step without effect is not recorded."""
    if not new and (key in dict(session.answers) or key in session.unknown):
        return session
    same = dict(stepped.answers) == dict(session.answers) and set(stepped.unknown) == set(session.unknown)
    return session if same else stepped


def _taken_back(step: UserStep, text: str, now: FailedCell, before: FailedCell) -> bool:
    """True if the front end sent this step before and no longer does."""
    if step.kind == "described":
        return text == _words(before) != _words(now)
    if step.kind == "answered":
        return step.key not in now.answers and step.value == before.answers.get(step.key, "").strip().lower()
    return step.kind == "unknown" and step.key in before.unknown and step.key not in now.unknown


def _without(session: Session, dropped: Callable[[UserStep, str], bool]) -> Session:
    """Return the session without the dropped steps; itself if none is dropped."""
    described = [step.value for step in session.steps if step.kind == "described"]
    situations = iter([*described[1:], session.snapshot.situation])
    texts = [_added_words(s.value, next(situations)) if s.kind == "described" else "" for s in session.steps]
    kept = [(step, text) for step, text in zip(session.steps, texts, strict=True) if not dropped(step, text)]
    if len(kept) == len(session.steps):
        return session
    first = described[0] if described else session.snapshot.situation
    snapshot = msgspec.structs.replace(session.snapshot, situation=first)
    session = msgspec.structs.replace(session, snapshot=snapshot, steps=())
    for step, text in kept:
        if step.kind == "described":
            session = session.describe(text)
        else:
            session = msgspec.structs.replace(session, steps=(*session.steps, step))
    return session


def _added_words(before: str, after: str) -> str:
    return after.removeprefix(before).strip()
