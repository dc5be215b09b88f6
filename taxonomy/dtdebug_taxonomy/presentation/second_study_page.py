"""Pages on the second study as Markdown: a label, the labels of something of ours, the study itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dtdebug_taxonomy.knowledge.loader import Knowledge
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
