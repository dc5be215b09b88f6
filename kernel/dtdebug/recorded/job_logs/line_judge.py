"""Decides which lines tell of a failure: those known to the knowledge, tracebacks, ends, and the machine's reports.

Lines of one shape are judged once for all files.
"""

from __future__ import annotations

from collections.abc import Sequence

from dtdebug.recorded.job_logs.part import EXAMPLES
from dtdebug.recorded.log_files.line_shapes import KeptLine
from dtdebug_taxonomy.knowledge.hardware import parse_event
from dtdebug_taxonomy.knowledge.loader import Knowledge, load
from dtdebug_taxonomy.logs import event_reader, exits, lines, omissions, progress
from dtdebug_taxonomy.text.matchers import lexicon
from dtdebug_taxonomy.text.pattern_matcher import PatternHit

_DIGITS = b"0123456789abcdefABCDEF"
_MOST = 200_000
"""Maximum number of shapes remembered."""
_MOST_SAID = 1_000
"""Maximum number of lines remembered."""
_ROLES = ("root", "cascade")
_HEAD = 400


def shape(raw: bytes) -> bytes:
    """Return a line without its digits."""
    return raw[:400].translate(None, _DIGITS)


class Judge:
    """Remembers which shapes tell of a failure."""

    def __init__(self) -> None:
        self._knowledge: Knowledge = load()
        self._matcher = lexicon(self._knowledge)
        self.telling: dict[bytes, bool] = {}
        self._worded: set[bytes] = set()
        """Shapes that matched by their words alone, whose meaning may depend on their digits."""
        self._said: dict[bytes, bool] = {}
        """Answers of `says` by line: the ranks of a job print the same ones."""
        self._examples: dict[str, list[float]] = {}

    def learn(self, rows: Sequence[KeptLine]) -> None:
        """Judge the lines with new shapes, each in the context of the lines around it."""
        new = [i for i, row in enumerate(rows) if shape(row.raw) not in self.telling]
        if not new:
            return
        if len(self.telling) > _MOST:
            self.telling.clear()
        wanted = self._tells(rows, new)
        for i in new:
            key = shape(rows[i].raw)
            self.telling[key] = self.telling.get(key, False) or i in wanted

    def is_example(self, kind: str, first: float | None) -> bool:
        """True if the text of another stream of this kind is wanted: there are few of them, or it reported earlier."""
        if not kind:
            return False
        time = first if first is not None else float("inf")
        kept = self._examples.setdefault(kind, [])
        if len(kept) < EXAMPLES:
            kept.append(time)
            return True
        latest = max(kept)
        if time < latest:
            kept[kept.index(latest)] = time
            return True
        return False

    def tells(self, raw: bytes) -> bool:
        """True if a line reports a failure; False if its shape was not learnt."""
        return self.telling.get(shape(raw), False)

    def says(self, raw: bytes) -> bool:
        """True if a telling line reports a failure with its own digits, unlike `skipped: 0`."""
        if shape(raw) not in self._worded:
            return True
        if raw not in self._said:
            if len(self._said) >= _MOST_SAID:
                self._said.clear()
            hits = self._matcher.hits(_text(raw))
            self._said[raw] = any(self._is_message(hit) and self._of_failure(hit) for hit in hits)
        return self._said[raw]

    def _tells(self, rows: Sequence[KeptLine], new: Sequence[int]) -> set[int]:
        once = list({shape(rows[i].raw): i for i in reversed(new)}.values())[::-1]
        fresh = [_text(rows[i].raw) for i in once]
        wanted = {once[hit.line - 1] for hit in self._matcher.hits("\n".join(fresh)) if self._is_message(hit)}
        hits = set(wanted)
        near: set[int] = set()
        self._worded |= {shape(rows[i].raw) for i in wanted}
        wanted |= {
            once[n] for n, text in enumerate(fresh) if parse_event(text) is not None or omissions.says_left_out(text)
        }
        printed = lines.split_lines("\n".join(_text(row.raw) for row in rows))
        happened = event_reader.find_events(printed)
        for raised in happened.raised:
            headed = bool(raised.unheeded or raised.process or raised.thread)
            wanted.update(range(max(raised.begin - 1 - headed, 0), raised.line))
            wanted.update({raised.handled - 1} if raised.handled else ())
        for end in exits.of_lines(printed, happened).exits:
            wanted.update((end.line - 1,) if end.line else ())
            near.update(range(max(end.line - 3, 0), end.line + 4) if end.line else ())
        wanted.update(happened.restarts)
        self._worded -= {shape(rows[i].raw) for i in wanted - hits if i < len(rows)}
        return wanted | {i for i in near if i >= len(printed) or not progress.STEP.search(printed[i].body[:_HEAD])}

    def _is_message(self, hit: PatternHit) -> bool:
        found = self._knowledge.evidence.get(hit.key)
        return found is not None and found.role in _ROLES

    def _of_failure(self, hit: PatternHit) -> bool:
        """True if the message has a symptom; others only report progress."""
        found = self._knowledge.evidence.get(hit.key)
        return found is not None and bool(found.symptoms or found.names)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace("\n", " ").replace("\x0b", " ").replace("\x0c", " ")
