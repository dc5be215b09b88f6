"""Long explanations that need no run: a symptom, cause, fix pattern, indicator, observation, check, label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from dtdebug_taxonomy.checks import Check, known_checks, page_address
from dtdebug_taxonomy.checks import load as checks
from dtdebug_taxonomy.knowledge import second_study
from dtdebug_taxonomy.knowledge.labs import cause_diff
from dtdebug_taxonomy.knowledge.loader import STUDY, Knowledge
from dtdebug_taxonomy.knowledge.preflight import KnownFile
from dtdebug_taxonomy.knowledge.preflight import load as preflight
from dtdebug_taxonomy.knowledge.schema import Cause, Evidence, Observation, Pattern, Symptom
from dtdebug_taxonomy.knowledge.second_study import Label, SecondStudy

NAME = "the second study (arXiv 2512.20345)"
KINDS = {"S": "symptom", "R": "root cause", "F": "fix pattern"}
JUDGED = "Which labels go together, and with what of ours, is our judgement, not the study's."


def labels_of(labels: Iterable[Label]) -> Iterator[str]:
    """Yield a section with the labels of something of ours, each with its provenance."""
    yield from ("", f"## In {NAME}", "")
    yield from [f"- {label}" for label in labels] or ["- none of its labels fits"]


def label_page(knowledge: Knowledge, study: SecondStudy, label: Label) -> Iterator[str]:
    """Yield the page of one label."""
    yield f"# {label}"
    yield ""
    yield f"A {KINDS[label.id[0]]} of {NAME}{f', stage: {label.stage}' if label.stage else ''}."
    yield f"{_provenance(label)} {JUDGED}"
    if label.share:
        yield from ("", f"Figure: {label.share}.")
    if label.distributed:
        yield from ("", f"Only with several processes, as we judge: {label.distributed}.")
    leading = [other for other in study.labels.values() if label.id in (*other.causes, *other.fixes)]
    yield from _items("Symptoms that it goes with", map(str, leading))
    yield from _items("Root causes", (str(study.labels[name]) for name in label.causes))
    yield from _items("Fix patterns", (str(study.labels[name]) for name in label.fixes))
    yield from _items("What dtdebug knows of it", (_own(knowledge, name) for name in study.own(label.id)))
    if label.id in study.ours.unreached:
        yield from ("", f"Nothing of ours leads to it: {study.ours.unreached[label.id]}.")
    yield from _items("Issues that show it", label.issues)


def about(study: SecondStudy) -> Iterator[str]:
    """Yield a description of the study, and which parts of it were read."""
    yield "# The second study"
    yield ""
    yield f"*{study.about.title}*, <{study.about.url}>. {study.about.wording}"
    yield ""
    yield f"No diagnosis rests on it, and its figures are never mixed with the counts of the first study. {JUDGED}"
    yield from _items("Read in its abstract", study.about.read)
    figures = [f"{label.id} {label.name}: {label.share}" for label in study.labels.values() if label.share]
    yield from _items("As reported in secondary notes that cite it", study.about.secondary)
    yield from _items("Figures of single labels, each with its source", figures)
    named = ", ".join(label.id for label in study.labels.values() if label.provenance == "read")
    yield ""
    yield f"Only the names of {named} were read; all others are marked as reconstructed wherever they are shown."


def all_labels(study: SecondStudy) -> Iterator[str]:
    """Yield every label, by kind."""
    for letter, kind in KINDS.items():
        yield from _items(f"{kind.capitalize()}s", map(str, study.of_kind(letter)))


def _provenance(label: Label) -> str:
    if label.provenance == "read":
        return "The name was read in the abstract, or in notes that cite the paper."
    what = "Name and stage are" if label.stage else "The name is"
    return f"{what} a reconstruction of ours, not the paper's: its lists could not be obtained."


def _items(title: str, rows: Iterable[str]) -> Iterator[str]:
    if lines := [f"- {row}" for row in rows]:
        yield from ("", f"## {title}", "", *lines)


def _own(knowledge: Knowledge, name: str) -> str:
    if name in knowledge.symptoms:
        return f"{name} {knowledge.symptoms[name].title}"
    if name in knowledge.causes:
        symptom, cause = knowledge.causes[name]
        return f"`{name}` {cause.title} ({symptom.code})"
    return f"`{name}` {knowledge.patterns[name].title}" if name in knowledge.patterns else name


_STUDY_NAME = "TOSEM'23 (arXiv 2112.06222)"


_SECOND = "second study: S01 to S34, R01 to R28, F1 to F6; `second-study` says what of it was read"


class UnknownNameError(KeyError):
    """Unknown name; the message suggests similar ones."""

    def __str__(self) -> str:
        return str(self.args[0])


_CHECK_GROUPS = {
    "DT0": "comments that suppress findings",
    "DT1": "ranks that do not all come to a call",
    "DT2": "start of the processes, devices, process groups",
    "DT3": "wrapped models and their gradients",
    "DT4": "arguments and results of collectives",
    "DT5": "data, samplers, seeds, schedules",
    "DT6": "checkpoints, files, trackers",
    "DT7": "DeepSpeed",
    "DT8": "Horovod, TensorFlow, Accelerate, Lightning and other libraries",
    "DT9": "launch scripts, environment, configuration",
}
"""Subjects of the checks, by the beginning of their ids."""


def explain(knowledge: Knowledge, name: str) -> str:
    """Return the Markdown page of a symptom (by code or id), cause, fix pattern, evidence, observation, check or label.

    Raises:
        UnknownNameError: nothing has this name.

    """
    wanted = name.strip()
    try:
        return "\n".join(_symptom(knowledge, knowledge.symptom(wanted)))
    except KeyError:
        pass
    low = wanted.lower()
    for pattern in knowledge.patterns.values():
        if low in (pattern.id, pattern.name.lower()):
            return "\n".join(_pattern(knowledge, pattern))
    if low in knowledge.evidence:
        return "\n".join(_evidence(knowledge, knowledge.evidence[low]))
    if low in knowledge.observations:
        return "\n".join(_observation(knowledge.observations[low]))
    for check in known_checks():
        if low in (check.id.lower(), check.name):
            return "\n".join(_check(knowledge, check))
    if low.startswith("dt") and (group := [c for c in known_checks() if c.id.startswith(wanted.upper())]):
        title = ": ".join([f"Checks {wanted.upper()}", *filter(None, [_CHECK_GROUPS.get(wanted.upper())])])
        return "\n".join([f"# {title}", "", *(f"- {c.id} {c.title} (`{c.name}`)" for c in group)])
    if (known := preflight().get(wanted.upper())) is not None:
        return "\n".join(_preflight(knowledge, known))
    if low in knowledge.causes:
        return "\n".join(_cause_page(knowledge, *knowledge.causes[low]))
    study = second_study.load()
    if low == "second-study":
        return "\n".join([*about(study), *all_labels(study)])
    if (label := study.labels.get(wanted.upper())) is not None:
        return "\n".join(label_page(knowledge, study, label))
    names = [*preflight(), *knowledge.symptoms, *(s.id for s in knowledge.symptoms.values()), *knowledge.patterns]
    names += [*checks(), *(c.name for c in checks().values()), *knowledge.causes, *study.labels, "second-study"]
    near = get_close_matches(wanted, [*names, *knowledge.evidence, *knowledge.observations], n=3)
    hint = f"; near: {', '.join(near)}" if near else "; `dtdebug explain` lists all"
    shown = repr(name[:200])
    raise UnknownNameError(f"{shown} is not a symptom, cause, fix pattern, indicator, observation or check{hint}")


def index(knowledge: Knowledge) -> str:
    """Return all symptoms with their published counts, and the fix patterns."""
    rows = [f"{s.code:<10} {s.counts[STUDY].faults:>4}  {s.title}" for s in knowledge.symptoms.values()]
    patterns = [f"  {p.id:<40} {p.title}" for p in knowledge.patterns.values()]
    return "\n".join([f"code     faults  symptom ({_STUDY_NAME})", *rows, "", "fix patterns", *patterns, "", _SECOND])


def _symptom(knowledge: Knowledge, s: Symptom) -> Iterator[str]:
    counts = s.counts[STUDY]
    yield f"# {s.code} {s.title}"
    yield ""
    yield s.summary.strip()
    yield ""
    by_framework = ", ".join(f"{k} {n}" for k, n in counts.frameworks.items())
    seen = (
        f"{counts.faults} of 637 faults in {_STUDY_NAME}: {by_framework}" if counts.faults else f"not in {_STUDY_NAME}"
    )
    yield f"Stage: {s.stage}; {seen}."
    if s.apart:
        yield from ("", "## How to tell it from its neighbours", "", s.apart.strip())
    if s.cause:
        yield from ("", "## Causes and fixes")
    for c in s.cause:
        yield ""
        yield f"### {c.title} (`{c.id}`)"
        yield ""
        yield from _cause(knowledge, c)
    if counts.fix_patterns:
        yield from ("", "## How such faults were fixed", "")
        ordered = sorted(counts.fix_patterns.items(), key=lambda row: -row[1])
        yield from (f"- {name}: {n}" for name, n in ordered)
    yield from labels_of(second_study.load().of_symptom(s.code))
    if s.reference:
        yield from ("", "## References", "")
        yield from (f"- {r.title}: {r.url}" for r in s.reference)


def _cause_page(knowledge: Knowledge, s: Symptom, c: Cause) -> Iterator[str]:
    yield f"# {c.title} (`{c.id}`)"
    yield ""
    yield f"A cause of {s.code} {s.title}."
    yield ""
    yield from _cause(knowledge, c)
    study = second_study.load()
    fix, roots = study.of_fix(c.pattern), study.of_cause(c.id)
    yield from labels_of([*study.of_symptom(s.code), *roots, *((fix,) if fix else ())])
    if not roots:
        yield "- none of its root causes fits"
    if not fix:
        yield "- none of its fix patterns fits"


def _cause(knowledge: Knowledge, c: Cause) -> Iterator[str]:
    yield c.why.strip()
    yield ""
    yield f"Fix ({knowledge.patterns[c.pattern].name}): {c.fix.strip()}"
    if diff := cause_diff(c):
        yield from ("", "```diff", diff.rstrip("\n"), "```")
    if c.evidence:
        yield from ("", "Seen with it:")
        yield from (f"- {_meaning(knowledge, name)} ({word})" for name, word in c.evidence.items())


def _meaning(knowledge: Knowledge, name: str) -> str:
    key, _, value = name.partition("=")
    if value:
        o = knowledge.observations[key]
        return f"{o.ask} {next(v.means for v in o.value if v.value == value)}"
    return knowledge.evidence[name].means


def _pattern(knowledge: Knowledge, p: Pattern) -> Iterator[str]:
    total = sum(s.counts[STUDY].fix_patterns.get(p.name, 0) for s in knowledge.symptoms.values())
    yield f"# {p.title} (`{p.name}`)"
    yield ""
    yield p.how.strip()
    yield ""
    yield f"{total} faults were fixed so in {_STUDY_NAME}:"
    rows = [(s.counts[STUDY].fix_patterns.get(p.name, 0), s) for s in knowledge.symptoms.values()]
    yield from (f"- {s.code} {s.title}: {n}" for n, s in sorted(rows, key=lambda row: -row[0]) if n)
    label = second_study.load().of_fix(p.id)
    yield from labels_of([label] if label else [])


def _evidence(knowledge: Knowledge, e: Evidence) -> Iterator[str]:
    yield f"# {e.id}"
    yield ""
    yield e.means
    yield ""
    yield f"Role: {e.role}." + (" One-process programs print it too." if e.generic else "")
    ways = {
        "Printed as": e.text,
        "Raised as": e.exception,
        "Said as": e.says,
        "Verdict on the ranks": e.verdict,
        "A rank that the others wait for stands in": e.stack,
        "Raised by a rank's own code": e.own,
        "Printed one above the other": tuple(" above ".join(pair) for pair in e.order),
    }
    for title, patterns in ways.items():
        if patterns:
            yield from ("", f"{title}:", *(f"- `{p}`" for p in patterns))
    if e.symptoms:
        yield from ("", "Of the faults that show it first:")
        yield from (f"- {word} {code} {knowledge.symptoms[code].title}" for code, word in e.symptoms.items())
    if e.cite:
        yield from ("", f"Where it comes from: {e.cite}")


def _observation(o: Observation) -> Iterator[str]:
    yield f"# {o.key}: {o.ask}"
    yield ""
    yield o.why.strip()
    yield ""
    yield f"How to find out: {o.how.strip()}"
    if o.command:
        yield from ("", "```sh", o.command, "```")
    yield from ("", "Answers:")
    yield from (f"- `{v.value}`: {v.means}" for v in o.value)


def _check(knowledge: Knowledge, c: Check) -> Iterator[str]:
    yield f"# {c.id} {c.title} (`{c.name}`)"
    yield ""
    if c.cause:
        seen = "; ".join(f"{knowledge.symptoms[code].title} ({code})" for code in c.symptom)
        symptom, cause = knowledge.causes[c.cause]
        yield f"What is seen when such a program runs: {seen}."
        pattern = knowledge.patterns[cause.pattern].name
        yield f"The cause of {symptom.code} that it sees: {cause.title} (fix: {pattern})."
        yield ""
    yield c.page.strip()
    yield from ("", "## References", "")
    yield from (f"- {r.title}: {r.url}" for r in c.reference)
    yield f"- This page: {page_address(c)}"


def _preflight(knowledge: Knowledge, known: KnownFile) -> Iterator[str]:
    """Yield the page of a problem that `dtdebug doctor` finds before a run."""
    yield f"# {known.id} {known.title}"
    yield ""
    seen = "; ".join(f"{knowledge.symptoms[code].title} ({code})" for code in known.symptom)
    yield f"What is seen when such a job runs: {seen}."
    yield ""
    yield known.page.strip()
    yield ""
    yield f"Fix ({knowledge.patterns[known.pattern].name}): {known.fix}."
    for code in known.symptom[:1]:
        counts = knowledge.symptoms[code].counts[STUDY]
        fixed = counts.fix_patterns.get(knowledge.patterns[known.pattern].name, 0)
        yield ""
        yield f"Of {counts.faults} faults with that symptom in {_STUDY_NAME}, {fixed} were fixed so."
    yield from ("", "## References", "")
    yield from (f"- {r.title}: {r.url}" for r in known.reference)
