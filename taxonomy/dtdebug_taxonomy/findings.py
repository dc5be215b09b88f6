"""Turns a snapshot and answers into findings: which evidence is so, and where it was seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice

import msgspec

from dtdebug_taxonomy import rank_signals, signals, similarity
from dtdebug_taxonomy.failure.bearing import Bearing, is_explained
from dtdebug_taxonomy.failure.own import own_errors
from dtdebug_taxonomy.finding import SIMILAR, SIMILAR_FIX, Finding, Source, plain
from dtdebug_taxonomy.kept import kept
from dtdebug_taxonomy.knowledge import Knowledge, load
from dtdebug_taxonomy.matching import Hit, Matcher, Needs, clip_lines, needs
from dtdebug_taxonomy.model import Evidence
from dtdebug_taxonomy.signs import speaks_of_several
from dtdebug_taxonomy.snapshot import ExceptionInfo, Snapshot, walk
from dtdebug_taxonomy.tongues import spoken
from dtdebug_taxonomy.wording import said

_COMMUNICATION = frozenset(("B.1", "B.2", "D.1.1"))
"""Symptoms of communication among ranks."""
_BEFORE_TRAINING = ("A.", "B.")
"""Symptoms of building, importing and setting up: over once training makes progress."""

_HOME = re.compile(r"(?:~|/(?:home|Users|root|workspace|data|mnt|scratch|work)\b)")
"""How paths of users begin."""
_FRAME = re.compile(r'File "[^"\n]{1,500}", line \d{1,9}')
_RAISED = 32
"""Different exceptions of ranks that are looked at."""


def collect(knowledge: Knowledge, snapshot: Snapshot, answers: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """All findings, one for each evidence and each observation.

    For an observation an answer beats a measurement, and that beats words; several values
    read out of words stand side by side.
    """
    matchers = _matchers(knowledge)
    evidence: dict[str, Finding] = {}
    cues: dict[str, dict[str, Finding]] = {}

    def note(found: Finding) -> None:
        if "=" in found.evidence:
            key, value = found.evidence.split("=", 1)
            cues.setdefault(key, {}).setdefault(value, found)
        else:
            evidence.setdefault(found.evidence, found)

    for found in _exceptions(knowledge, snapshot.exception):
        note(found)
    for found in _printed(knowledge, snapshot):
        note(found)
    for found in _said(matchers, snapshot.situation):
        note(found)

    for found in (*_watched(knowledge, snapshot), *_in_source(knowledge, snapshot), *_ranks(knowledge, snapshot)):
        note(found)
    for found in _checked(knowledge, snapshot):
        note(found)
    for found in (*_in_sequence(knowledge, evidence), *_own(knowledge, snapshot, evidence)):
        note(found)

    known: dict[str, Finding] = {}
    for key, by_value in cues.items():
        first = min(by_value.values(), key=lambda f: (f.source, f.line))
        known[key] = msgspec.structs.replace(first, evidence=key, values=tuple(sorted(by_value)))
    for key, (value, words) in signals.measure(snapshot).items():
        if key in knowledge.observations:
            known[key] = Finding(evidence=key, values=(value,), source="measured", words=plain(words))
    for key, value in (answers or {}).items():
        if _is_value(knowledge, key, value):
            known[key] = Finding(evidence=key, values=(value,), source="answered")

    alike = similarity.likeness(knowledge, snapshot)
    similar = [
        Finding(evidence=name, source="similar", words=alike.words, scores=scores)
        for name, scores in ((SIMILAR, alike.symptoms), (SIMILAR_FIX, alike.patterns))
        if scores
    ]
    return (*evidence.values(), *known.values(), *similar)


def _is_value(knowledge: Knowledge, key: str, value: str) -> bool:
    found = knowledge.observations.get(key)
    return found is not None and any(v.value == value for v in found.value)


def _in_order(hits: Iterable[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda h: h.start)


def _from_hit(hit: Hit, source: Source, rank: int | None) -> Finding:
    return Finding(evidence=hit.key, source=source, line=hit.line, words=plain(hit.words), rank=rank)


def _printed(knowledge: Knowledge, snapshot: Snapshot) -> Iterator[Finding]:
    """Findings by the output's lines, as far as they bear on the failure."""
    bearing = Bearing(snapshot)
    output = clip_lines(snapshot.output)
    for hit in _in_order(_matchers(knowledge).printed.hits(output)):
        line = snapshot.true_line(hit.line)
        if ("=" in hit.key and _in_own_path(output, hit)) or not _bears(knowledge, bearing, hit.key, line):
            continue
        if "=" not in hit.key and _is_source(output, hit):
            continue
        found = _from_hit(hit._replace(line=line), "printed", bearing.rank(line))
        raised = bearing.ended_by(line)
        yield msgspec.structs.replace(found, words=plain(raised), terminal=True) if raised else found


def _said(matchers: _Matchers, situation: str) -> Iterator[Finding]:
    """Findings by the user's words; those in another language are read in English and quoted as they stand."""
    for hit in _in_order(said(matchers.said, situation)):
        yield _from_hit(hit, "said", None)
    for row in spoken(situation):
        for hit in _in_order(said(matchers.said, row.english)):
            yield Finding(evidence=hit.key, source="said", line=row.line, words=plain(row.words))


def _is_source(output: str, hit: Hit) -> bool:
    """It is on the line of source that a traceback shows: what the program might print there, and has not."""
    begin = output.rfind("\n", 0, hit.start) + 1
    above = output[output.rfind("\n", 0, max(begin - 1, 0)) + 1 : begin]
    frame = _FRAME.search(above)
    if frame is None:
        return False
    at = begin + frame.start()  # the source is indented more; where it is not known, the exception follows at once
    return output[at : at + 2] == "  " and at < hit.start


def _bears(knowledge: Knowledge, bearing: Bearing, name: str, line: int) -> bool:
    """Whether a message on that line can explain the failure."""
    found = knowledge.evidence.get(name)
    if found is None or not found.symptoms:
        return True
    if found.role == "cascade" and bearing.is_echo(line):
        return False
    if _is_of_any_library(found) and bearing.is_own(line):
        return False
    starting = all(code[:2] in _BEFORE_TRAINING for code in found.symptoms)
    # what only says that something failed explains nothing either, if training went on
    return not (bearing.is_overtaken(line) or ((starting or found.catch_all) and bearing.is_trained_after(line)))


def _is_of_any_library(found: Evidence) -> bool:
    """Words of communication that any library may print: of ranks only where ranks communicate."""
    return found.generic and bool(found.symptoms) and _COMMUNICATION.issuperset(found.symptoms)


def _in_own_path(text: str, hit: Hit) -> bool:
    """Only a directory of the user's is named so, as in `/home/me/horovod/train.py`: that says nothing."""
    begin = max(text.rfind(c, max(hit.start - 300, 0), hit.start) for c in " \n\t\"'=(") + 1
    end = hit.start + len(hit.words)
    before, after = text[begin : hit.start], text[end : end + 300].split(maxsplit=1)[:1]
    rest = hit.words[-1:] + after[0] if after else hit.words[-1:]
    return rest.count("/") == 1 and _HOME.match(before) is not None and "-packages/" not in before


def _exceptions(knowledge: Knowledge, exception: ExceptionInfo | None) -> Iterator[Finding]:
    """Findings by class name, then by message, of an exception and all that it carries."""
    for info in walk(exception):
        for name, ids in _by_class(knowledge).items():
            if info.type == name or ("." not in name and info.type.rsplit(".", 1)[-1] == name):
                for evidence in ids:
                    yield Finding(evidence=evidence, source="exception", words=plain(info.type), rank=info.rank)
        text = "\n".join((f"{info.type.rsplit('.', 1)[-1]}: {info.message}", *info.notes))
        for hit in _in_order(_matchers(knowledge).printed.hits(text)):
            yield _from_hit(hit, "exception", info.rank)


def _ranks(knowledge: Knowledge, snapshot: Snapshot) -> Iterator[Finding]:
    """Findings by the verdict on the ranks, by where its culprits stand, and by what ranks raised, culprits first."""
    verdict = snapshot.verdict
    culprits = set(verdict.culprits) if verdict else set()
    states = sorted((r for r in snapshot.ranks if r.rank is not None), key=lambda r: r.rank not in culprits)
    if verdict is not None:
        accused = [r for r in states if r.rank in culprits]
        counted = "uneven" if rank_signals.uneven(states) else ""
        rounds = "loop_ended" if rank_signals.loop_ended(verdict) else ""
        more = {*(r.signal for r in accused), counted, rounds} - {""}
        said = any(c.what == "raised" for c in verdict.claims) or any(r.exception for r in accused)
        kind = "" if verdict.kind == "dead" and said else verdict.kind  # what it raised says more than that it ended
        words = {kind, *(f"{verdict.kind} {word}" for word in more)}
        places = {f"{f.file.replace(chr(92), '/')} {f.function}": r.rank for r in accused for f in r.stack}
        for e in knowledge.evidence.values():
            if not (e.verdict or e.stack) or (e.verdict and words.isdisjoint(e.verdict)):
                continue
            where = [place for place in places if any(re.search(p, place) for p in e.stack)]
            if where or not e.stack:
                rank = places[where[0]] if where else min(culprits, default=None)
                yield Finding(evidence=e.id, source="measured", words=plain(verdict.summary), rank=rank)
    raised: dict[str, int | None] = {}
    for r in states:
        if r.exception:
            raised.setdefault(r.exception, r.rank)
    explained = is_explained(verdict)
    for text, rank in islice(raised.items(), _RAISED):
        for hit in _in_order(_matchers(knowledge).printed.hits(text)):
            known = knowledge.evidence.get(hit.key)
            if explained and known is not None:
                adds = not (_is_of_any_library(known) if rank in culprits else known.role == "cascade")
            else:
                adds = True
            if adds:
                yield _from_hit(hit, "exception", rank)


def _watched(knowledge: Knowledge, snapshot: Snapshot) -> Iterator[Finding]:
    """Findings by the invariants that did not hold while it trained, and by the ranks that were late."""
    by_name = {name: e.id for e in knowledge.evidence.values() for name in e.watch}
    rows = [(v.invariant, v.ranks, v.means) for v in snapshot.watched]
    rows += [(f"late {row.phase}", row.ranks, row.means) for row in snapshot.late]
    for name, ranks, means in rows:
        if name in by_name:
            rank = ranks[0] if len(ranks) == 1 else None
            yield Finding(evidence=by_name[name], source="measured", words=plain(means), rank=rank)


def _in_source(knowledge: Knowledge, snapshot: Snapshot) -> Iterator[Finding]:
    """Findings by what the checks see in the files that stacks name, the nearest first."""
    by_check = {number: e.id for e in knowledge.evidence.values() for number in e.check}
    verdict = snapshot.verdict
    raised = verdict.culprits if verdict is not None and verdict.kind == "dead" else ()
    for f in snapshot.source_findings:
        if f.check in by_check:
            yield Finding(
                evidence=by_check[f.check],
                source="checked",
                file=f.file,
                line=f.line,
                words=plain(f.words),
                rank=f.rank if f.near != "file" else None,
                near=f.near,
                diff=f.diff,
                check=f.check,
                told=f.message if f.near == "line" and f.rank in raised else "",
                way=f.fix,
            )


def _checked(knowledge: Knowledge, snapshot: Snapshot) -> Iterator[Finding]:
    """Findings by what the checks see in the source of the failed cell; at its line, if the exception went through."""
    by_check = {number: e.id for e in knowledge.evidence.values() for number in e.check}
    if not snapshot.cell.strip() or not by_check:
        return
    from dtdebug_taxonomy.checks.examine import examine
    from dtdebug_taxonomy.checks.proving import proven, unified
    from dtdebug_taxonomy.checks.settings import Settings
    from dtdebug_taxonomy.source.notebook import Notebook

    code = Notebook([("code", snapshot.cell)]).code
    raised = {(f.line, f.code.strip()) for info in walk(snapshot.exception) for f in info.frames if f.code.strip()}
    settings = Settings(select=tuple(by_check))
    hits = examine(code, settings, failed=lambda check, error: None)
    for hit in hits:
        line = code.text.place(hit.span.start).line
        text = code.text.line(line).strip()
        found = Finding(evidence=by_check[hit.check.id], source="checked", line=line, words=plain(text))
        if (line, text) in raised:
            after = proven(code, hits, [hit], settings).text
            found = msgspec.structs.replace(
                found,
                near="line",
                diff=unified("cell", f"{code.text}\n", f"{after}\n"),
                check=hit.check.id,
                told=hit.message if hit.severity != "hint" else "",
                way=hit.fix.title if hit.fix is not None else "",
            )
        yield found


def _in_sequence(knowledge: Knowledge, seen: Mapping[str, Finding]) -> Iterator[Finding]:
    """Findings by which message was printed above which: a launcher's restart is seen by that alone."""
    printed = {name: f for name, f in seen.items() if f.source == "printed"}
    for e in _with_order(knowledge):
        later = [printed[b] for a, b in e.order if a in printed and b in printed and printed[a].line < printed[b].line]
        if later:
            yield msgspec.structs.replace(min(later, key=lambda f: f.line), evidence=e.id)


def _own(knowledge: Knowledge, snapshot: Snapshot, seen: Mapping[str, Finding]) -> Iterator[Finding]:
    """What a rank's own code raised first, unless that rank printed a message that names the failure.

    Without the name of a rank something must speak of several: a program of one process is not ours to explain.
    """
    known = [(f, knowledge.evidence[name]) for name, f in seen.items() if f.source in ("printed", "exception")]
    naming = [(f, e) for f, e in known if e.role == "root" and e.symptoms and not e.catch_all]
    # The exception's own words name nothing if any program may print them and they name no cause.
    vague = {e.id for f, e in naming if e.generic and not e.names and (f.terminal or _is_of_any_library(e))}
    roots = {f.rank for f, e in naming if e.id not in vague}
    errors = [e for e in own_errors(snapshot) if e.rank not in roots]
    if any(e.rank is None for e in errors):
        launched = any(e.role == "cascade" and not e.generic for _, e in known)
        if not (launched or speaks_of_several(snapshot)):
            errors = [e for e in errors if e.rank is not None]
    first = next((e for e in errors if not (e.library or e.inside)), None) or next(iter(errors), None)
    if first is None or None in roots:
        return
    anything = "<inside>" if first.inside else "<library>" if first.library else "*"
    named = [e.id for e in knowledge.evidence.values() if first.type in e.own and anything == "*"]
    for name in named or [e.id for e in knowledge.evidence.values() if anything in e.own]:
        source: Source = "printed" if first.line else "exception"
        yield Finding(
            evidence=name, source=source, line=first.line, words=plain(first.words), rank=first.rank, terminal=True
        )


class _Matchers:
    def __init__(self, knowledge: Knowledge) -> None:
        evidence = knowledge.evidence.values()
        values = [(f"{o.key}={v.value}", v) for o in knowledge.observations.values() for v in o.value]
        printed = [(e.id, p) for e in evidence for p in e.text]
        shown = [(k, p) for k, v in values for p in v.text]
        spoken = [(e.id, p) for e in evidence for p in e.says] + [(k, p) for k, v in values for p in v.says]

        def work_out() -> dict[str, Needs]:
            return {pattern: needs(pattern) for _, pattern in (*printed, *shown, *spoken)}

        known = kept("patterns", dict[str, Needs], work_out) if knowledge is load() else work_out()
        self.printed = Matcher([*printed, *shown], known=known)
        self.said = Matcher(printed, words=spoken, known=known)


@lru_cache(maxsize=4)
def _matchers(knowledge: Knowledge) -> _Matchers:
    return _Matchers(knowledge)


def lexicon(knowledge: Knowledge) -> Matcher:
    """All messages that are known, as one matcher of printed text."""
    return _matchers(knowledge).printed


@lru_cache(maxsize=4)
def _with_order(knowledge: Knowledge) -> tuple[Evidence, ...]:
    return tuple(e for e in knowledge.evidence.values() if e.order)


@lru_cache(maxsize=4)
def _by_class(knowledge: Knowledge) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for e in knowledge.evidence.values():
        for name in e.exception:
            found.setdefault(name, []).append(e.id)
    return found
