"""Turns a snapshot and answers into findings: which evidence holds, and where it was seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec

from dtdebug_taxonomy.checks import load
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference import from_snapshot
from dtdebug_taxonomy.inference.combined import combine_findings
from dtdebug_taxonomy.inference.conditions import goes_on
from dtdebug_taxonomy.inference.finding import READ, SIMILAR, SIMILAR_CAUSE, SIMILAR_FIX, Finding, Source, from_hit
from dtdebug_taxonomy.inference.from_measurements import (
    is_of_any_library,
    of_cell,
    of_ranks,
    of_shown,
    of_source,
    of_watch,
)
from dtdebug_taxonomy.inference.shown_source import SHOWN
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.schema import Evidence
from dtdebug_taxonomy.logs.relevance import Bearing, is_explained
from dtdebug_taxonomy.model.ranks import Verdict
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, walk
from dtdebug_taxonomy.text import cause_likeness, similarity, word_reader
from dtdebug_taxonomy.text.clauses import clauses, hits_in_words
from dtdebug_taxonomy.text.doubts import drop_doubts, is_vain, vain_spans
from dtdebug_taxonomy.text.matchers import Matchers, in_order, matchers_of
from dtdebug_taxonomy.text.pattern_matcher import PatternHit, clip_lines, plain
from dtdebug_taxonomy.text.phrase_table import spoken_phrases

WITHOUT_ERROR = frozenset(("B.2", "C.4", "D.2.1", "D.2.3"))
"""Symptoms of hanging and slow programs, which their users interrupt."""
_BESIDE, _READ_BESIDE = 0.55, 0.22
"""Factors on what the output and the words say as wholes if there are both: they are no independent witnesses, and what
was printed is trusted more."""
_OF_A_DEVICE = re.compile(r"(?i)gpu|cuda|device|card|vram|video|hbm")


def drop_redundant(knowledge: Knowledge, evidence: dict[str, Finding], cues: dict[str, dict[str, Finding]]) -> None:
    """Remove redundant findings from both; `cues` are observations with the values that were read."""
    _of_a_host(cues)
    _of_how_it_learns(evidence, cues)
    _of_those_who_waited(knowledge, evidence, cues)
    for name in [n for n in evidence if evidence.keys() & {*knowledge.evidence[n].unless}]:
        del evidence[name]


def _of_a_host(cues: dict[str, dict[str, Finding]]) -> None:
    """Drop exhausted device memory if the same words report that of the host."""
    host, device = (cues.get(key, {}).get("full") for key in ("host_memory", "device_memory"))
    if host is None or device is None or {host.source, device.source} != {"said"} or _OF_A_DEVICE.search(device.words):
        return
    if host.line == device.line:
        _drop(cues, "device_memory", "full")


def _of_how_it_learns(evidence: dict[str, Finding], cues: dict[str, dict[str, Finding]]) -> None:
    """Drop what "slower" says of the speed where the same words say that it learns slower."""
    found = evidence.get("said-learns-slower")
    if found is None:
        return
    for key, value in (("throughput_vs_one_device", "lower"), ("manifestation", "slow")):
        read = cues.get(key, {}).get(value)
        if read is not None and read.source == "said" and read.line == found.line:
            _drop(cues, key, value)


def _of_those_who_waited(
    knowledge: Knowledge, evidence: dict[str, Finding], cues: dict[str, dict[str, Finding]]
) -> None:
    """Drop findings of ranks that only waited for a rank whose exception is printed earlier."""
    roots = (f for f in evidence.values() if f.terminal and f.rank is not None and f.source == "printed")
    first = min((f for f in roots if knowledge.evidence[f.evidence].role == "root"), key=lambda f: f.line, default=None)
    if first is None:
        return
    for name in [n for n, f in evidence.items() if f.source == "printed" and f.line > first.line]:
        found = knowledge.evidence[name]
        waited = found.role == "cascade" and not WITHOUT_ERROR.isdisjoint(found.symptoms)
        if waited and evidence[name].rank not in (None, first.rank):
            del evidence[name]
    hang = cues.get("manifestation", {}).get("hang")
    if hang is not None and hang.source == "printed" and hang.line > first.line:
        _drop(cues, "manifestation", "hang")


def _drop_opposed(evidence: dict[str, Finding], known: tuple[Finding, ...]) -> None:
    """Drop findings of checks in the shown source that keep a job from starting, if it is known to run."""
    for name, f in [*evidence.items()]:
        if f.source == "checked" and f.file == SHOWN and goes_on(load()[f.check].symptom, known):
            del evidence[name]


def _of_followers(knowledge: Knowledge, evidence: dict[str, Finding], verdict: Verdict | None) -> None:
    """Drop what other ranks printed for the loss of a rank whose own exception names what ended it."""
    culprits, lost = (verdict.culprits, verdict.waiting) if verdict is not None else ((), ())
    rows = {name: (f, knowledge.evidence[name]) for name, f in evidence.items() if f.source == "printed"}
    if not any(f.terminal and f.rank in culprits and e.role == "root" and e.symptoms for f, e in rows.values()):
        return
    for name, (found, known) in rows.items():
        of_other = found.rank is not None and found.rank not in culprits
        if of_other and (known.role == "cascade" or found.rank in lost):
            del evidence[name]


def _drop(cues: dict[str, dict[str, Finding]], key: str, value: str) -> None:
    del cues[key][value]
    if not cues[key]:
        del cues[key]


_BUILDING = ("A.1",)
_BEFORE_TRAINING = ("A.", "B.")
"""Symptoms of building, importing and setting up: past once training makes progress."""
_ENDS = (*_BEFORE_TRAINING, "C.", "D.1.1")
"""Prefixes of symptoms after which training does not continue."""
_FROM_OUTSIDE = "D.1.other"
"""Symptom of jobs that a scheduler ends: what is left of a completed run is ended so, too."""
_SLOW = "D.2.3"
"""Symptom that only exists if a person finds the program slow."""

_TRAINED = "any_step_completed=yes"
_SMALLER_RUN = re.compile(r"(?i)\b(?:single|one|1)[ -](?:node|machine|server|host|gpu|card|device|process)\b")
"""Clause about the run that works: its completed steps do not belong to the run that fails."""
_ATTEMPT = re.compile(
    r"(?im)(?:^|[.!?;]\s)\s?(?:also,? |additionally,? |then )?(?:I|we)(?:'ve| have| had)? "
    r"(?P<beside>also |even |then |additionally )?(?:tried|attempted)\b(?P<rest>[^.!?\n]{0,400})"
)
_FAILED = re.compile(r"(?i)\bbut\b|\berrors?\b|\bfail|\bcrash|\bbreaks?\b|\braises?\b")
"""Words for a failure: one in an attempted workaround is not the failure that is described."""
_HOME = re.compile(r"(?:~|/(?:home|Users|root|workspace|data|mnt|scratch|work)\b)")
"""Beginning of users' paths."""
_SETTING = re.compile(r"(?:.{0,120}?\]\s{1,4})?\s{0,8}[\w-]{1,60} \.{3,60} ")
"""As Megatron and DeepSpeed list theirs: `zero_config .................. stage=3`."""
_STATEMENT = re.compile(r"\s*(?:assert\b.{1,400}?, ?[fFrRbB]{0,2}[\"']|raise \w[\w.]{0,80}\()")
"""Beginning of a statement that would print a message."""
_FRAME = re.compile(r'File "[^"\n]{1,500}", line \d{1,9}')


def collect(knowledge: Knowledge, incident: Incident, answers: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """Return all findings, one for each evidence and each observation.

    For an observation, an answer precedes a measurement, and that precedes words; several values
    read from words are kept together.
    """
    snapshot = incident.snapshot
    matchers = matchers_of(knowledge)
    evidence: dict[str, Finding] = {}
    cues: dict[str, dict[str, Finding]] = {}

    def note(found: Finding) -> None:
        if not found.values:
            evidence.setdefault(found.evidence, found)
        for value in found.values:
            cues.setdefault(found.evidence, {}).setdefault(value, found)

    for found in _exceptions(knowledge, snapshot.exception):
        note(found)
    for found in _output_findings(knowledge, incident):
        note(found)
    for found in _description_findings(knowledge, matchers, snapshot.situation):
        note(found)

    for found in (*of_watch(knowledge, snapshot), *of_source(knowledge, snapshot), *of_ranks(knowledge, snapshot)):
        note(found)
    for found in (*of_cell(knowledge, snapshot), *of_shown(knowledge, snapshot)):
        note(found)
    for found in (*_in_sequence(knowledge, evidence), *_own(knowledge, incident, evidence)):
        note(found)

    known: dict[str, Finding] = {}
    if is_explained(snapshot.verdict):
        _of_followers(knowledge, evidence, snapshot.verdict)
    drop_redundant(knowledge, evidence, cues)
    for key, by_value in cues.items():
        first = min(by_value.values(), key=lambda f: (f.source, f.line))
        known[key] = msgspec.structs.replace(first, values=tuple(sorted(by_value)))
    for key, (value, words) in from_snapshot.measure(snapshot).items():
        if key in knowledge.observations:
            known[key] = Finding(evidence=key, values=(value,), source="measured", words=plain(words))
    for key, value in (answers or {}).items():
        if _is_value(knowledge, key, value):
            known[key] = Finding(evidence=key, values=(value,), source="answered")

    _drop_opposed(evidence, tuple(known.values()))
    words_alone = not any(f.source in {"printed", "exception", "checked", "measured"} for f in evidence.values())
    similar = _as_a_whole(knowledge, incident, words_alone=words_alone)
    findings = (*evidence.values(), *known.values(), *similar)
    return (*findings, *combine_findings(knowledge, findings))


def _as_a_whole(knowledge: Knowledge, incident: Incident, *, words_alone: bool) -> Iterator[Finding]:
    """Yield what the user's words and the output say as wholes, whatever patterns find in them.

    Where nothing but words is there, they are held against what is known of each cause as well.
    """
    snapshot = incident.snapshot
    alike = similarity.likeness(knowledge, snapshot)
    told = word_reader.read_words(incident.prose.bilingual, knowledge.prior) if snapshot.situation else None
    of_words = told.ratios if told is not None else {}
    both = bool(alike.symptoms and of_words)
    runs = any(e.rank is not None for e in incident.errors)  # so nothing is being built
    for name, scores, words in (
        (SIMILAR, alike.symptoms, alike.words),
        (READ, of_words, told.words if told is not None else ""),
        (SIMILAR_FIX, alike.patterns, alike.words),
    ):
        if scores:
            least = dict.fromkeys(_BUILDING, min(scores.values())) if runs and name != SIMILAR_FIX else {}
            weight = 1.0 if name == SIMILAR_FIX or not both else _READ_BESIDE if name == READ else _BESIDE
            weighed = {code: weight * v for code, v in (scores | least).items()}
            yield Finding(evidence=name, source="similar", words=words, scores=weighed)
    if words_alone and snapshot.situation and not (incident.errors or snapshot.verdict):
        causes = cause_likeness.likeness_to_causes(knowledge, drop_doubts(incident.prose.bilingual))
        if causes:
            yield Finding(evidence=SIMILAR_CAUSE, source="similar", scores=causes)


def _is_value(knowledge: Knowledge, key: str, value: str) -> bool:
    found = knowledge.observations.get(key)
    return found is not None and any(v.value == value for v in found.value)


def _output_findings(knowledge: Knowledge, incident: Incident) -> Iterator[Finding]:
    """Yield findings from the output's lines that bear on the failure."""
    snapshot, bearing = incident.snapshot, incident.relevance
    output = clip_lines(snapshot.output)
    hits = in_order(matchers_of(knowledge).output_matcher.hits(output))
    last = {hit.key: snapshot.true_line(hit.line) for hit in hits}
    for hit in hits:
        line = snapshot.true_line(hit.line)
        if bearing.is_recovered(last[hit.key]) and bearing.is_step(line):
            continue
        if (hit.is_of_value and _in_own_path(output, hit)) or not _bears(knowledge, bearing, hit.key, line):
            continue
        if not hit.is_of_value and _is_source(output, hit):
            continue
        found = from_hit(hit._replace(line=line), "printed", bearing.rank(line))
        if "\n" not in hit.words:
            found = msgspec.structs.replace(found, row=output[hit.start :].partition("\n")[0])
        raised = bearing.ended_by(line)
        yield msgspec.structs.replace(found, words=plain(raised), terminal=True) if raised else found


def _description_findings(knowledge: Knowledge, matchers: Matchers, situation: str) -> Iterator[Finding]:
    """Yield findings from the user's words; other languages are read in English and quoted in the original."""
    if not situation:
        return  # their patterns, three megabytes, need not be read
    smaller = [(at, at + len(c)) for at, c in clauses(clip_lines(situation)) if _SMALLER_RUN.search(c)]
    hits = in_order(hits_in_words(matchers.words_matcher, situation))
    vain = vain_spans(situation)
    for hit in _without_attempts(knowledge, situation, hits):
        if hit.key in knowledge.evidence and is_vain(vain, hit.start):
            continue
        if hit.key != _TRAINED or not any(start <= hit.start < end for start, end in smaller):
            yield from_hit(hit, "said", None)
    for row in spoken_phrases(situation):
        for hit in in_order(hits_in_words(matchers.words_matcher, row.english)):
            yield from_hit(hit._replace(line=row.line, words=row.words), "said", None)


def _without_attempts(knowledge: Knowledge, situation: str, hits: list[PatternHit]) -> list[PatternHit]:
    """Drop hits on the failure of an attempted workaround, if the text has a failure of its own."""
    tries = [m.span() for m in _ATTEMPT.finditer(clip_lines(situation)) if m["beside"] and _FAILED.search(m["rest"])]
    if not tries:
        return hits
    telling = [h for h in hits if h.key in knowledge.evidence and knowledge.evidence[h.key].symptoms]
    beside = [h for h in telling if any(start <= h.start < end for start, end in tries)]
    return [h for h in hits if h not in beside] if len(beside) < len(telling) else hits


def _is_source(output: str, hit: PatternHit) -> bool:
    """True if the hit is on a source line, in a listing or in a traceback, or among settings that are listed.

    The program could print it but did not; a setting is no event.
    """
    begin = output.rfind("\n", 0, hit.start) + 1
    if _STATEMENT.match(output, begin, hit.start + len(hit.words)) or _SETTING.match(output, begin, hit.start):
        return True
    above = output[output.rfind("\n", 0, max(begin - 1, 0)) + 1 : begin]
    frame = _FRAME.search(above)
    if frame is None:
        return False
    at = begin + frame.start()  # the source is indented more; if it is unknown, the exception follows at once
    return output[at : at + 2] == "  " and at < hit.start


def _bears(knowledge: Knowledge, bearing: Bearing, name: str, line: int) -> bool:
    """True if a message on that line can explain the failure."""
    found = knowledge.evidence.get(name)
    if found is not None and bearing.is_completed and (found.role == "cascade" or _FROM_OUTSIDE in found.symptoms):
        return False
    if found is None or not found.symptoms:
        return name != "manifestation=hang" or not (bearing.is_trained_after(line) or bearing.went_well_after(line))
    if bearing.went_well_after(line, started=all(c.startswith(_ENDS) for c in found.symptoms)):
        return False
    if (found.role == "cascade" and bearing.is_echo(line)) or bearing.is_made_good(line):
        return False
    if is_of_any_library(found) and bearing.is_own(line):
        return False
    if bearing.is_interrupted(line) and WITHOUT_ERROR.isdisjoint(found.symptoms):
        return False
    starting = all(code[:2] in _BEFORE_TRAINING for code in found.symptoms)
    # a message that something failed explains nothing if training continued; if nothing failed, none does
    passed = (
        starting
        or found.catch_all
        or (bearing.nothing_failed and (found.generic or all(c.startswith((*_ENDS, _SLOW)) for c in found.symptoms)))
    )
    if starting and bearing.had_started(line):
        return False
    return not (bearing.is_overtaken(line) or (passed and (bearing.is_trained_after(line) or bearing.is_completed)))


def _in_own_path(text: str, hit: PatternHit) -> bool:
    """True if it is only a directory of the user's, as in `/home/me/horovod/train.py`, which means nothing."""
    begin = max(text.rfind(c, max(hit.start - 300, 0), hit.start) for c in " \n\t\"'=(") + 1
    end = hit.start + len(hit.words)
    before, after = text[begin : hit.start], text[end : end + 300].split(maxsplit=1)[:1]
    rest = hit.words[-1:] + after[0] if after else hit.words[-1:]
    return rest.count("/") == 1 and _HOME.match(before) is not None and "-packages/" not in before


def _exceptions(knowledge: Knowledge, exception: ExceptionInfo | None) -> Iterator[Finding]:
    """Yield findings by class name, then by message, of an exception and all that it carries."""
    for info in walk(exception):
        for name, ids in _by_class(knowledge).items():
            if info.type == name or ("." not in name and info.type.rsplit(".", 1)[-1] == name):
                for evidence in ids:
                    yield Finding(evidence=evidence, source="exception", words=plain(info.type), rank=info.rank)
        text = "\n".join((f"{info.type.rsplit('.', 1)[-1]}: {info.message}", *info.notes))
        for hit in in_order(matchers_of(knowledge).output_matcher.hits(text)):
            found = from_hit(hit, "exception", info.rank)
            raised = text.split("\n", 1)[0] if hit.line == 1 else ""  # whole, as of a printed exception
            yield msgspec.structs.replace(found, words=plain(raised)) if raised else found


def _in_sequence(knowledge: Knowledge, seen: Mapping[str, Finding]) -> Iterator[Finding]:
    """Yield findings by the order of printed messages: nothing else shows a launcher's restart."""
    printed = {name: f for name, f in seen.items() if f.source == "printed"}
    for e in _with_order(knowledge):
        later = [printed[b] for a, b in e.order if a in printed and b in printed and printed[a].line < printed[b].line]
        if later:
            yield msgspec.structs.replace(min(later, key=lambda f: f.line), evidence=e.id)


_PICKLED = re.compile(r"\AAttributeError: Can't (?:pickle|get) (?:local object|attribute)\b")
"""AttributeError of pickle's, which is not about an attribute of the program's own object."""


def _own(knowledge: Knowledge, incident: Incident, seen: Mapping[str, Finding]) -> Iterator[Finding]:
    """Yield the first error of a rank's own code, unless that rank printed a message that names the failure.

    Without a known rank, something must indicate several processes: programs of one process are not explained here.
    """
    known = [(f, knowledge.evidence[name]) for name, f in seen.items() if f.source in ("printed", "exception")]
    naming = [(f, e) for f, e in known if e.role == "root" and e.symptoms and not e.catch_all]
    # The exception's own words name nothing if any program may print them and they name no cause.
    vague = {e.id for f, e in naming if e.generic and not e.names and (f.terminal or is_of_any_library(e))}
    roots = {f.rank for f, e in naming if e.id not in vague}
    errors = [e for e in incident.own_errors if e.rank not in roots]
    if any(e.rank is None for e in errors):
        launched = any(e.role == "cascade" and not e.generic for _, e in known)
        if not (launched or incident.mentions_several):
            errors = [e for e in errors if e.rank is not None]
    first = next((e for e in errors if not (e.library or e.inside)), None) or next(iter(errors), None)
    if first is None or None in roots:
        return
    anything = "<inside>" if first.inside else "<library>" if first.library else "*"
    kind = "" if _PICKLED.search(first.words) else first.type
    named = [e.id for e in knowledge.evidence.values() if kind in e.own and anything == "*"]
    for name in named or [e.id for e in knowledge.evidence.values() if anything in e.own]:
        source: Source = "printed" if first.line else "exception"
        yield Finding(
            evidence=name, source=source, line=first.line, words=plain(first.words), rank=first.rank, terminal=True
        )


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
