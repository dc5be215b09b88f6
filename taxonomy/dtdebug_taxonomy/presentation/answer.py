"""The short answer that every front end shows: what happened, where, why, the fix, and one next step.

`dtdebug why` and `--full` show the rest.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
from dtdebug_taxonomy.explanations import ordinary_errors, origin, outdated, parting
from dtdebug_taxonomy.explanations.comparison import SCALED, is_comparison
from dtdebug_taxonomy.explanations.discovery import is_discovery
from dtdebug_taxonomy.explanations.measured_step import measured
from dtdebug_taxonomy.explanations.model import WORKED_OUT, Explanation, Reason
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference.shown_source import SHOWN
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs.exception_roles import role_of
from dtdebug_taxonomy.model.answer import Answer, Certainty, Fix, Spot, Step
from dtdebug_taxonomy.model.claims import LOOP_ENDED, LOOP_LASTS
from dtdebug_taxonomy.model.rank_ranges import spell
from dtdebug_taxonomy.model.ranks import Frame, Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot, walk
from dtdebug_taxonomy.model.training import Violation
from dtdebug_taxonomy.presentation.account_spots import Lead, origin_of, spots_of_all, spots_of_parting
from dtdebug_taxonomy.stacks.frames import own_frame, short, spell_place
from dtdebug_taxonomy.text.pattern_matcher import plain
from dtdebug_taxonomy.text.whole_parts import first_parts, message_parts
from dtdebug_taxonomy.verdicts.lost_peer import of_explained

NOT_UNDERSTOOD = "Not enough is known to say what this is."
FIRST_ERROR = Step(text="Find the earliest error of every rank, and the rank that printed nothing.")
_OWN_CODE, _MESSAGE = "program-fails-by-itself", "message-says-so"
"""Causes that say no more than the event does."""
_SPOTS, _HEADLINE, _SENTENCE = 4, 240, 320
_PLACE = r" (at|in) (?:%s|(?:\S{0,300}/)?%s)(?::|, line )%d\b(?:,?( in [\w.<>]{1,100}))?"
"""A place within a sentence; a spot shows it with its line of code."""
_OLD_CODE = re.compile(r" \((?:[A-F]\.\d{1,2}\.(?:\d{1,2}|other)|[A-F]\.\d{1,2})\)")
_DURING = {
    "called": "called {call}", "entered": "called {call}", "last": "last called {call}",
    "raised": "raised {words}", "ended": "{words}", "left": "finished the program",
}  # fmt: skip
"""Kind of a claim -> state of its ranks at its place, the most telling first; waits are put together below."""

_KILLED_BY = re.compile(r"(?i)\b(exit ?code:? ?-(\d{1,2}))\b(?! ?[=(,]? ?SIG)")
_SIGNALS = {str(s.value): s.name for s in signal.Signals}
"""Number of a signal -> its name: launchers print only the negative number."""
CodeAt = Callable[[str, int], str]
"""Returns the source line at (file, line); empty if that file is not at hand."""


def no_code(_file: str, _line: int) -> str:
    """Return no source line: for front ends that read no files."""
    return ""


def build_answer(
    d: Diagnosis | None,
    snapshot: Snapshot | None,
    verdict: Verdict | None = None,
    *,
    event: str = "",
    next_step: Step | None = None,
    code_at: CodeAt = no_code,
) -> Answer:
    """Return the short answer of a diagnosis and the verdict on its ranks.

    `event` is the first line that a command itself has; `next_step` precedes the diagnosis's own.
    """
    verdict = verdict or (snapshot.verdict if snapshot is not None else None)
    nothing = d is None or not (d.recognised or d.ordinary or d.happened or d.verdict != "unknown")
    if nothing and event and verdict is None:
        return Answer(headline=plain(event, _HEADLINE), sure="well", next=next_step)
    if verdict is not None and verdict.kind == "none" and (d is None or not d.recognised):
        return Answer(headline=_headline(event or verdict.summary), sure="well", next=next_step)
    broken = _first_violation(snapshot, verdict)
    happened = plain(broken.means, _SENTENCE) if broken is not None and not broken.cause else _event(d, verdict, event)
    cause = _cause(d)
    if cause is not None and (cause.named or cause.band == "likely"):
        happened = of_explained(happened)
    sentence = _cause_sentence(cause, verdict) if cause is not None else ""
    lead = (cause.file, cause.line) if cause is not None and any(r.of_account for r in cause.because) else ("", 0)
    spots = tuple(_spots(snapshot, verdict, sentence or happened, code_at, lead))[:_SPOTS]
    states = [s.state for s in spots if s.ranks or s.state]
    told = sentence and states and (all(states) or any(state.startswith("raised ") for state in states))
    told = told or (cause is not None and cause.cause == SCALED)  # a class of symptoms would say more than the user
    headline = _without_places(sentence or happened, () if sentence else spots)
    reason = _reason(cause, headline, spots) if cause is not None else None
    sure = _certainty(d, cause, verdict)
    known = cause is not None and (cause.named or cause.band == "likely") and not is_comparison(cause)
    remedy = d.advice[0] if d is not None and d.ordinary and d.advice else None
    return Answer(
        headline=_headline(headline),
        event=_headline(_without_places(happened, spots)) if sentence and not told else "",
        spots=spots,
        why=_why(cause or remedy, reason, sentence, f"{headline} {happened}" if sentence and not told else headline),
        record=_record(reason, headline) if reason is not None else "",
        fix=_measured_fix(cause or remedy, broken),
        sure="unknown" if sure == "place" and not spots else sure,
        guess=_guess(d) if cause is None else "",
        next=None if known else (next_step or _next(d, verdict, asks=broken is None)),
        notes=tuple(_notes(d, snapshot))[:1],
    )


def _first_violation(snapshot: Snapshot | None, verdict: Verdict | None) -> Violation | None:
    """Return what the watch over the training shows first, if no rank failed: what names its own cause comes first."""
    if snapshot is None or (verdict is not None and verdict.kind != "none"):
        return None
    return measured(snapshot.watched) or next(iter(snapshot.watched), None)


def _notes(d: Diagnosis | None, snapshot: Snapshot | None) -> Iterator[str]:
    """Yield what limits the answer, contradictions first."""
    read = snapshot.notes if snapshot is not None else ()
    own = [n for n in (d.notes if d is not None else ()) if n not in {plain(each) for each in read}]
    yield from (plain(n, _SENTENCE) for n in (*own, *read))


_MODULE_OF_ERROR = re.compile(r"\b(?:[a-z_]\w{0,40}\.){1,8}(?=[A-Z]\w{0,60}(?:Error|Exception|Warning)\b)")
_ROOM = 150
"""Most characters of a headline beside which an exception's module has room."""


def _headline(text: str) -> str:
    if len(text) > _ROOM:
        text = _MODULE_OF_ERROR.sub("", text)
    text = _KILLED_BY.sub(lambda m: f"{m[1]} = {_SIGNALS[m[2]]}" if m[2] in _SIGNALS else m[1], text)
    return plain(message_parts(text, _HEADLINE), _HEADLINE)


def _event(d: Diagnosis | None, verdict: Verdict | None, event: str) -> str:
    """Return what happened, in one sentence."""
    if event or d is None or d.ordinary:
        return event or (d.ordinary if d is not None else NOT_UNDERSTOOD)
    summary = verdict.summary if verdict is not None and verdict.kind != "none" else ""
    named = bool(d.advice) and d.advice[0].named  # what is printed beside a wait says why
    if verdict is not None and verdict.kind == "not_understood" and named and d.happened:
        return d.happened
    if summary or d.happened:
        return summary or d.happened
    if d.verdict == "unknown":
        return NOT_UNDERSTOOD
    titles = [s.title for s in d.symptoms[: 2 if d.verdict == "apart" else 1]]
    return f"{' or '.join([titles[0], *(t[:1].lower() + t[1:] for t in titles[1:])])}."


def _cause(d: Diagnosis | None) -> Explanation | None:
    """Return the first cause that says more than the event and is not unlikely."""
    if d is None or d.ordinary:
        return None
    return next((a for a in d.advice if a.band != "unlikely" and a.cause not in {_OWN_CODE, _MESSAGE}), None)


def _guess(d: Diagnosis | None) -> str:
    return plain(_sentence(d.guesses[0].title), _SENTENCE) if d is not None and d.guesses else ""


def _cause_sentence(cause: Explanation, verdict: Verdict | None) -> str:
    """Return the cause as a sentence about this failure; empty if it is only a class of causes."""
    if is_comparison(cause) or is_discovery(cause):
        return _sentence(cause.title)
    if cause.band != "likely":
        return ""
    _, known = load().causes.get(cause.cause, ("", None))
    if known is not None and known.headline and verdict is not None and verdict.culprits and verdict.waiting:
        roles = {name: spell(ranks, 8) for name, ranks in _roles(verdict).items()}
        if set(re.findall(r"{(\w+)}", known.headline)) <= roles.keys():
            text = known.headline.format(**roles)
            return text[:1].upper() + text[1:]
    return _sentence(re.sub(r" \(DT\d+\)$", "", cause.title)) if cause.specific else ""


def _roles(verdict: Verdict) -> dict[str, tuple[int, ...]]:
    """Return the ranks that a cause's sentence may name: who called, who did not, whose loop ended first."""
    roles = {}
    if verdict.kind in {"extra", "replaced"}:
        roles = {"callers": verdict.culprits, "others": verdict.waiting}
    elif verdict.kind == "skipped":
        roles = {"callers": verdict.waiting, "others": verdict.culprits}
    for claim in verdict.claims:
        if claim.what == "compared" and claim.words.startswith((LOOP_ENDED, LOOP_LASTS)):
            ended = claim.words.startswith(LOOP_ENDED) == (set(claim.ranks) <= set(verdict.culprits))
            short_of, lasting = verdict.culprits, verdict.waiting
            roles |= {"ended": short_of if ended else lasting, "lasting": lasting if ended else short_of}
    return roles


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text[-1] in ".!?" else f"{text}."


_LEFT_COMMA = re.compile(r",(?=[;.])")
"""Comma that a dropped place leaves."""


def _without_places(text: str, spots: Iterable[Spot]) -> str:
    """Drop places that spots show, and codes of symptoms."""
    for s in spots:
        if s.file:
            place = _PLACE % (re.escape(s.file), re.escape(short(s.file).rpartition("/")[2]), s.line)
            text = re.sub(place, lambda m: "" if m[1] == "at" else m[2] or m[0], text)  # "it is in" needs its object
    return _OLD_CODE.sub("", _LEFT_COMMA.sub("", text))


def _reason(cause: Explanation, headline: str, spots: Iterable[Spot]) -> Reason | None:
    """Return the best reason that neither the headline nor a place states; answers to questions are none."""
    if is_comparison(cause):
        return None  # the headline is the user's own words
    shown = {s.code for s in spots if s.code}
    rows = [r for r in cause.because if r.weight > 0 and not r.values and r.source != "similar"]
    if any(r.of_account for r in rows):
        return None
    rows = [r for r in rows if r.source != "checked" or r.words not in shown]
    rows.sort(key=lambda r: r.source != "checked")
    telling = (r for r in rows if r.source == "checked" or r.means.rstrip(".") not in headline)
    return next(telling, None) or next((r for r in rows if r.words and r.words not in headline), None)


def _says_the_same(text: str, other: str) -> bool:
    """True if nearly all words of a text are in the other one."""
    words = set(re.findall(r"\w{3,}", text.lower()))
    return bool(words) and len(words - set(re.findall(r"\w{3,}", other.lower()))) <= len(words) * _NEW_WORDS


_NEW_WORDS = 0.25
"""Share of new words up to which a sentence says the same as another."""


def _why(cause: Explanation | None, reason: Reason | None, sentence: str, headline: str) -> str:
    """Return the cause if the headline is the event, else the best reason for it."""
    if cause is None:
        return ""
    if not sentence:
        seen = next((r.means for r in cause.because if r.file == SHOWN and not _is_general(r)), cause.title)
        return "" if _says_the_same(cause.title, headline) else plain(_sentence(seen), _SENTENCE)
    if reason is not None and reason.means == WORKED_OUT:
        return plain(_sentence(cause.why), _SENTENCE)
    if reason is None or _is_general(reason):
        return ""
    return "" if _says_the_same(reason.means, headline) else plain(_sentence(reason.means), _SENTENCE)


def _is_general(reason: Reason) -> bool:
    """True if a check is the reason, and its message is not known here."""
    return reason.source == "checked" and reason.means.startswith("A check sees it")


_DEBRIS = re.compile(r"[\s:;,.)\]}]")
"""Beginning of words that were cut out of the middle of a line."""
_LEFT_OVER = re.compile(r"\.?['\"][)\],:;]+$")
"""End of a printed value that begins before the words."""


def _record(r: Reason, headline: str) -> str:
    words = plain(" ".join(r.words.split()), 80)
    if words[:40] in headline or _DEBRIS.match(words):
        words = ""
    elif r.source != "checked":  # a line of the source is whole
        words = _LEFT_OVER.sub("", words)
    match r.source:
        case "checked":
            place = spell_place(r.file, r.line) if r.file else f"line {r.line} of the cell"
        case "printed" if words:
            place = f"line {r.line}" if r.line else "the output"
        case "said":
            place = "your description"
        case _:
            return ""
    return f"{place}: {words}" if words else place


def _measured_fix(cause: Explanation | None, broken: Violation | None) -> Fix | None:
    """Return the fix: that of what the watch saw, unless the cause says more than a class of causes."""
    if broken is not None and broken.fix and not broken.cause and (cause is None or not cause.specific):
        own = _fix(cause) if cause is not None and cause.diff_of == "yours" else None
        said = plain(_sentence(first_parts(broken.fix, _SENTENCE)), _SENTENCE)
        return own or Fix(text=said, file=broken.file, line=broken.line if broken.diff else 0, diff=broken.diff)
    return _fix(cause) if cause is not None else None


def _fix(cause: Explanation) -> Fix:
    mine = cause.diff if cause.diff_of == "yours" else ""
    agrees = bool(mine) and any(r.evidence == parting.EVIDENCE for r in cause.because)  # by what the diff does
    proven = agrees or (cause.settled and not any(r.evidence in _OF_CAUSE for r in cause.because))
    proven = cause.works if cause.tried else proven
    text = plain(_sentence(first_parts(cause.fix, _SENTENCE)), _SENTENCE)
    return Fix(text=text, file=cause.file, line=cause.line, diff=mine, proven=proven, tried=cause.tried)


_OF_CAUSE = frozenset(
    {
        origin.EVIDENCE,
        ordinary_errors.EVIDENCE,
        ordinary_errors.TWO_SIDES,
        parting.EVIDENCE,
        "call-failed",
        "refused-by-a-test",
    }
)
"""Evidence that shows where a value came from, and not what it should be: no contract or test says so."""


def _certainty(d: Diagnosis | None, cause: Explanation | None, verdict: Verdict | None) -> Certainty:
    if verdict is not None and verdict.open:
        return "possible"
    if cause is None:
        if d is not None and (_states_it(verdict) or (d.advice and d.advice[0].cause == _MESSAGE)):
            return "stated"
        if d is not None and (d.ordinary or (d.advice and d.advice[0].cause == _OWN_CODE)):
            return "own"
        return "place" if verdict is not None and verdict.culprits and verdict.confidence >= _SURE else "unknown"
    if cause.works:
        return "certain"
    if any(r.evidence in {ordinary_errors.TWO_SIDES, outdated.AT_LINE} for r in cause.because):
        return "likely"
    if cause.band == "likely":
        told = any(r.of_account for r in cause.because)
        # how a failure shows is measured, too, and proves no cause
        measured = cause.grade == "measured" and any(r.source == "measured" and not r.values for r in cause.because)
        sure = measured and (told or verdict is None or verdict.confidence >= _SURE)
        return "certain" if sure else "likely"
    return "possible"


_STATES = re.compile(r"\b(?:must|should|expect\w*|requires?|got|assert) ")


def _states_it(verdict: Verdict | None) -> bool:
    """True if a message of the ranks that failed says what was expected."""
    if verdict is None or verdict.kind != "dead":
        return False
    first = {*verdict.culprits}
    return any(c.what == "raised" and {*c.ranks} <= first and _STATES.search(c.words) for c in verdict.claims)


_SURE = 0.9
"""Confidence of a verdict from which a measured cause is called certain."""


def _next(d: Diagnosis | None, verdict: Verdict | None, *, asks: bool = True) -> Step | None:
    """Return the next step; after an exception there is no question, for its message is the better witness."""
    if d is None or d.ordinary:
        return None
    raised = any(k.key == "manifestation" and k.values == ("exception",) for k in d.known)
    raised = raised or (verdict is not None and any(c.what == "raised" for c in verdict.claims))
    if d.next is not None and d.next.kind == "measure":
        return Step(text=d.next.text, command=d.next.command, outcome=d.next.why)
    if d.verdict == "echo" and not d.happened:
        return FIRST_ERROR
    if asks and d.question is not None and not d.asks_nothing and not raised:
        return Step(text=f"Answer this: {d.question.ask}", command="dtdebug wizard")
    return None


def _spots(
    snapshot: Snapshot | None, verdict: Verdict | None, headline: str, code_at: CodeAt, lead: Lead
) -> Iterator[Spot]:
    """Yield the origin of a value, then the place of each rank or group of equal ranks, those that failed first."""
    told = _told_places(snapshot, verdict, lead)
    if told:
        alike = len({spot.state for spot in told if spot.state.startswith("raised ")}) == 1
        for spot in told:
            code = spot.code or code_at(spot.file, spot.line)
            mark = spot.mark if spot.mark != (0, len(code)) else (0, 0)  # all of it marks nothing
            state = "" if alike and _names_class(spot.state, headline) else _unsaid(spot.state, headline)
            yield replace(spot, state=state, code=code, mark=mark)
        return
    if verdict is not None and verdict.kind != "none" and verdict.sites:
        origins = [(a, origin_of(a, lead)) for a in snapshot.accounts] if snapshot is not None else []
        yield from dict.fromkeys(s for a, s in origins if s and (not a.exception or (s.file, s.line) == lead))
        first = set(verdict.culprits)
        places: dict[tuple[bool, str, int], list[int]] = {}
        for site in verdict.sites:
            places.setdefault((site.rank not in first, site.file, site.line), []).append(site.rank)
        for (_, file, line), ranks in sorted(places.items(), key=lambda row: row[0][0]):
            state = _unsaid(_state(verdict, ranks), headline)
            yield Spot(ranks=tuple(ranks), file=file, line=line, code=code_at(file, line), state=state)
        if snapshot is not None and snapshot.parting is not None:
            yield from spots_of_parting(snapshot.parting)
        return
    seen = _first_violation(snapshot, verdict)
    if seen is not None:
        if seen.file:
            code = code_at(seen.file, seen.line)
            yield Spot(ranks=seen.ranks, file=seen.file, line=seen.line, code=code, state=f"step {seen.step}")
        return
    frame, rank = _raised_at(snapshot, verdict)
    if frame is not None:
        code = code_at(frame.file, frame.line) or plain(frame.code.strip())
        yield Spot(ranks=() if rank is None else (rank,), file=frame.file, line=frame.line, code=code)


def _unsaid(state: str, headline: str) -> str:
    """Return the state of ranks, or nothing if the headline has it."""
    return "" if state.removeprefix("raised ").rstrip(". ") in headline else state


def _names_class(state: str, headline: str) -> bool:
    """True if a headline says that the class of a state was raised: with the line of its message that tells most."""
    found = re.match(r"raised (?:\w{1,80}\.){0,8}(\w{1,80})", state)
    return found is not None and re.search(rf" raised (?:\w{{1,80}}\.){{0,8}}{found[1]}\b", headline) is not None


def _told_places(snapshot: Snapshot | None, verdict: Verdict | None, lead: Lead) -> tuple[Spot, ...]:
    """Return the places that the accounts of the ranks that failed show; none for a hang or an unknown failure."""
    if snapshot is None or not snapshot.accounts or (verdict is not None and verdict.kind not in {"dead", "none"}):
        return ()
    inner = _raised_at(snapshot, verdict)[0]
    if inner is not None and all(role_of(a.exception) == "launcher" for a in snapshot.accounts):
        return ()
    first = verdict.culprits if verdict is not None else ()
    told = spots_of_all([a for a in snapshot.accounts if a.rank is None or not first or a.rank in first], lead)
    read = any(not a.with_values for a in snapshot.accounts)  # of ranks that print the same, one is read
    if (read and _at_one_place(verdict)) or (len(first) == 1 and not any(s.ranks for s in told)):
        return tuple(replace(s, ranks=first) for s in told)
    return told


def _at_one_place(verdict: Verdict | None) -> bool:
    """True if all ranks that failed raised on one line."""
    if verdict is None or len(verdict.culprits) < 2:
        return False
    sites = [s for s in verdict.sites if s.rank in verdict.culprits]
    return len({(s.file, s.line) for s in sites}) == 1


def _raised_at(snapshot: Snapshot | None, verdict: Verdict | None) -> tuple[Frame | None, int | None]:
    """Return the user's frame that raised, and its rank."""
    raised = next((c for c in verdict.claims if c.what == "raised" and c.file), None) if verdict is not None else None
    if raised is not None:
        return Frame(raised.file, raised.line, raised.function), next(iter(raised.ranks), None)
    if snapshot is None:
        return None, None
    shown = next(iter(walk(snapshot.exception)), None) or Incident(snapshot).first_error
    return (own_frame(shown.frames), shown.rank) if shown is not None else (None, None)


def _state(verdict: Verdict, ranks: list[int]) -> str:
    """Return what ranks do at their place, by the strongest claim about them."""
    own = [c for c in verdict.claims if set(ranks) & set(c.ranks)]
    waits = next((c for c in own if c.what == "waits"), None)
    telling = next((c for c in own if c.what in _DURING), None)
    followed = verdict.kind == "dead" and not set(ranks) & set(verdict.culprits)
    if followed and waits is None:
        return "failed afterwards"
    if telling is not None and not followed and (waits is None or telling.what in {"raised", "ended"}):
        call = f"{telling.op}{'' if telling.seq is None else f' #{telling.seq}'}"
        words = telling.words or ("ended" if telling.what == "ended" else "")
        return plain(_DURING[telling.what].format(call=call, words=words), 100) if call or words else ""
    if waits is None or not waits.op:
        return ""
    seconds = f" {waits.seconds:.0f} s" if waits.seconds is not None and waits.seconds >= 1 else ""
    return f"waits{seconds} in {waits.op}{'' if waits.seq is None else f' #{waits.seq}'}"
