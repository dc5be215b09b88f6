"""Implements the wizard as a pure state machine: an immutable session and its transitions.

A session is a captured snapshot and the steps taken since; answers, open questions and the
diagnosis all follow from these two. Going back drops the last step, so nothing can be
half undone.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Literal

import msgspec

from dtdebug.privacy.boundary import diagnose, mask_snapshot
from dtdebug.privacy.sanitize import clean, mask, plain
from dtdebug_taxonomy.diagnosis.diagnose import Asked, Diagnosis, Known
from dtdebug_taxonomy.knowledge.loader import Knowledge, load
from dtdebug_taxonomy.model.snapshot import Snapshot

VERSION = 1
"""Version of the saved form; other versions are not read."""

_SITUATION = 8 * 1024
"""Maximum number of characters of the user's words in a session."""
_OUTPUT = 64 * 1024
"""Maximum number of characters of program output in a session; the end is kept, where runs fail."""


class UserStep(msgspec.Struct, frozen=True, kw_only=True):
    """Step that the user took."""

    kind: Literal["answered", "unknown", "described", "finished"]
    key: str = ""
    value: str = ""
    """For `answered` the value; for `described` the words before the step."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Snapshot and the steps taken since; every transition returns a new session.

    The snapshot is bounded when the session is made, so that a resumed session sees
    exactly what the interrupted one saw.
    """

    v: int = VERSION
    snapshot: Snapshot
    steps: tuple[UserStep, ...] = ()

    def __post_init__(self) -> None:
        """Bound the snapshot, so that every session is small enough to be saved after each step."""
        msgspec.structs.force_setattr(self, "snapshot", _bound_snapshot(self.snapshot))

    @property
    def answers(self) -> tuple[tuple[str, str], ...]:
        """Answers as (key, value), in the order of the latest answer to each key."""
        return tuple((key, value) for key, value in self._latest().items() if value is not None)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Keys that the user could not answer."""
        return tuple(key for key, value in self._latest().items() if value is None)

    @property
    def is_stopped(self) -> bool:
        """True if the user has stopped, or no question was left; any further step continues."""
        return bool(self.steps) and self.steps[-1].kind == "finished"

    @property
    def has_description(self) -> bool:
        """True if there is a basis for a diagnosis: the user's words, output or an exception."""
        return bool(self.snapshot.situation or self.snapshot.output or self.snapshot.exception)

    def _latest(self) -> dict[str, str | None]:
        latest: dict[str, str | None] = {}
        for step in self.steps:
            if step.kind in ("answered", "unknown"):
                latest.pop(step.key, None)
                latest[step.key] = step.value if step.kind == "answered" else None
        return latest

    def answer(self, key: str, value: str, knowledge: Knowledge | None = None) -> Session:
        """Answer a question, or override an earlier answer or measurement.

        Raises:
            ValueError: no such observation, or no such value; the text lists the valid ones.

        """
        observations = (knowledge or load()).observations
        key, value = _existing(key, observations), value.strip().lower()
        values = [v.value for v in observations[key].value]
        if value not in values:
            raise ValueError(f"{_short(value)} is no value of {key}: choose one of {', '.join(values)}")
        return self._after(UserStep(kind="answered", key=key, value=value))

    def dont_know(self, key: str, knowledge: Knowledge | None = None) -> Session:
        """Put a question aside, and withdraw an answer to it.

        Raises:
            ValueError: no such observation.

        """
        return self._after(UserStep(kind="unknown", key=_existing(key, (knowledge or load()).observations)))

    def describe(self, text: str) -> Session:
        """Add to the user's description in plain words; text above the limit is dropped."""
        text = plain(text.encode("utf-8", "replace").decode()).strip()
        if not text:
            return self
        before = self.snapshot.situation
        snapshot = msgspec.structs.replace(self.snapshot, situation=f"{before}\n{text}" if before else text)
        step = UserStep(kind="described", value=before)
        return msgspec.structs.replace(self, snapshot=snapshot, steps=(*self.steps, step))

    def finish(self) -> Session:
        """Stop asking."""
        return self if self.is_stopped else self._after(UserStep(kind="finished"))

    def back(self) -> Session:
        """Return the session before its last step, or itself if there is none."""
        if not self.steps:
            return self
        *steps, last = self.steps
        snapshot = self.snapshot
        if last.kind == "described":
            snapshot = msgspec.structs.replace(snapshot, situation=last.value)
        return msgspec.structs.replace(self, snapshot=snapshot, steps=tuple(steps))

    def _after(self, step: UserStep) -> Session:
        return msgspec.structs.replace(self, steps=(*self.steps, step))

    def diagnosis(self, knowledge: Knowledge | None = None) -> Diagnosis:
        """Return the current diagnosis; the order of answers does not matter."""
        return diagnose(knowledge or load(), self.snapshot, dict(sorted(self.answers)), tuple(sorted(self.unknown)))

    def question(self, diagnosis: Diagnosis) -> Asked | None:
        """Return the next question, or None if none is worth asking or the user has stopped."""
        return None if self.is_stopped else diagnosis.question


def heard(diagnosis: Diagnosis) -> Known | None:
    """Return the hint in the captured text for the current question."""
    asked = diagnosis.question
    return next((k for k in diagnosis.known if asked is not None and k.key == asked.key), None)


def default(diagnosis: Diagnosis) -> str | None:
    """Return the value that pressing Enter selects: the hinted one, if it is unique."""
    hint = heard(diagnosis)
    return hint.values[0] if hint is not None and len(hint.values) == 1 else None


def known_line(known: Known) -> str:
    """Format a known observation with its source in one line."""
    because = f", because {' '.join(known.words.split())}" if known.words else ""
    return f"{known.source}: {known.key} = {' or '.join(known.values)}{because}"


def to_json(session: Session) -> bytes:
    """Return the saved form, without secrets."""
    steps = tuple(msgspec.structs.replace(step, value=mask(step.value)) for step in session.steps)
    return msgspec.json.encode(msgspec.structs.replace(session, snapshot=mask_snapshot(session.snapshot), steps=steps))


def from_json(data: bytes) -> Session | None:
    """Return a saved session with its texts cleaned; None if it is broken or of another version."""
    try:
        session = msgspec.convert(_clean_texts(msgspec.json.decode(data)), Session)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return session if session.v == VERSION else None


def _clean_texts(value: object) -> object:
    """Return decoded JSON with all texts cleaned: the file may be foreign, and its texts may reach a terminal."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_texts(v) for v in value]
    return {clean(k): _clean_texts(v) for k, v in value.items()} if isinstance(value, dict) else value


def _existing(key: str, observations: Mapping[str, object]) -> str:
    """Return the key in the spelling of the knowledge."""
    name = key.strip().lower().replace("-", "_")
    if name in observations:
        return name
    near = difflib.get_close_matches(name, observations, n=1)
    hint = f"did you mean {near[0]}?" if near else "`dtdebug explain` lists those there are"
    raise ValueError(f"no observation is called {_short(key)}: {hint}")


def _short(text: str) -> str:
    text = " ".join(clean(text).split())
    return repr(text if len(text) <= 30 else text[:27] + "...")


def _bound_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the beginning of the user's words and the end of the output."""
    if len(snapshot.situation) > _SITUATION:
        snapshot = msgspec.structs.replace(snapshot, situation=snapshot.situation[:_SITUATION])
    output = snapshot.output
    if len(output) <= _OUTPUT:
        return snapshot
    begin = len(output) - _OUTPUT
    begin = output.find("\n", begin - 1) + 1 or begin  # at the beginning of a line, if there is one
    dropped = output.count("\n", 0, begin)
    return msgspec.structs.replace(
        snapshot, output=output[begin:], first_lines=_shift_lines(snapshot.first_lines or ((1, 1),), dropped)
    )


def _shift_lines(first_lines: tuple[tuple[int, int], ...], dropped: int) -> tuple[tuple[int, int], ...]:
    """Adjust line numbers of the whole output after the first lines of an excerpt were dropped."""
    ahead = [(1, whole + dropped + 1 - line) for line, whole in first_lines if line <= dropped + 1]
    return (*ahead[-1:], *((line - dropped, whole) for line, whole in first_lines if line > dropped + 1))
