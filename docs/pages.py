"""The pages of the site that are made from the knowledge: symptoms, causes, checks, labs, topics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from dtdebug_taxonomy.checks import UNUSED_IGNORE, Check, known_checks
from dtdebug_taxonomy.checks import load as load_checks
from dtdebug_taxonomy.knowledge.labs import Lab, cause_diff, lab_diff, load_labs
from dtdebug_taxonomy.knowledge.loader import STUDY, load, sort_key
from dtdebug_taxonomy.knowledge.preflight import load as load_preflight
from dtdebug_taxonomy.knowledge.schema import MINUTES, STRENGTHS, Cause, Evidence, Reference, Strength, Symptom
from dtdebug_taxonomy.knowledge.topics import QUESTIONS, Topic, groups, load_topics

KNOWN, CHECKS, LABS, TOPICS = load(), load_checks(), load_labs(), load_topics()
PREFLIGHT = load_preflight()
STUDY_FAULTS = sum(s.counts[STUDY].faults for s in KNOWN.symptoms.values())
ALONE = "---\norphan: true\n---\n"  # reached by links and search: a menu of hundreds of lines helps nobody
DEVICES = {"cpu": "no GPU", "gpu": "with GPUs", "cluster": "on several hosts"}
LEXERS = {".py": "python", ".sh": "sh", ".slurm": "sh", ".json": "json", ".yaml": "yaml", ".txt": "text"}


def pages() -> dict[str, str]:
    """Every page made from the knowledge: its name on the site -> Markdown."""
    tables = {"symptoms": _symptoms, "causes": _causes, "labs": _labs, "topics": _topics}
    found = {name: _joined(table()) for name, table in tables.items()}
    for s in KNOWN.symptoms.values():
        found[f"symptoms/{s.code}"] = ALONE + _joined(_symptom(s))
        found.update((f"causes/{s.code}/{c.id}", ALONE + _joined(_cause(s, c))) for c in s.cause)
    found.update((f"checks/{c.id}", ALONE + _joined(_check(c))) for c in known_checks())
    found.update((f"labs/{lab.id}", ALONE + _joined(_lab(lab))) for lab in LABS.values())
    found.update((f"topics/{topic.name}", ALONE + _joined(_topic(topic))) for topic in TOPICS.values())
    return found


def appended(page: str) -> str:
    """What the site adds to the end of a written page."""
    made = {"checks": _all_checks, "doctor": _all_found}.get(page)
    return _joined(made()) if made else ""


def prose(text: str) -> str:
    """Text of the knowledge as Markdown: only its `code` is marked up, all else stands as it is written."""
    return re.sub(r"`[^`]*`|[<*_\[|]", lambda m: m[0] if m[0][0] == "`" else f"\\{m[0]}", text.strip())


def _linked(text: str) -> str:
    """Prose of a symptom's page, in which codes of symptoms lead to their pages."""
    codes = "|".join(re.escape(code) for code in sorted(KNOWN.symptoms, key=len, reverse=True))
    return re.sub(rf"\b(?:{codes})\b(?!\.?\w)", lambda m: f"[{m[0]}](../symptoms/{m[0]}.md)", prose(text))


def _joined(lines: Iterable[str]) -> str:
    return "\n\n".join(line for line in lines if line) + "\n"


def _code(text: str, language: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"^`+", text, re.MULTILINE)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _span(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _items(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _section(title: str, body: str) -> Iterator[str]:
    if body:
        yield from (f"## {title}", body)


def _folded(title: str, *body: str) -> Iterator[str]:
    yield from (f"<details><summary>{title}</summary>", *body, "</details>")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))


def _to_symptom(code: str, up: str = "../") -> str:
    return f"[{code}]({up}symptoms/{code}.md) {prose(KNOWN.symptoms[code].title)}"


def _to_cause(s: Symptom, c: Cause, up: str = "../") -> str:
    return f"[{prose(c.title)}]({up}causes/{s.code}/{c.id}.md)"


def _to_check(c: Check, up: str = "../") -> str:
    return f"[{c.id}]({up}checks/{c.id}.md) {prose(c.title)}"


def _to_lab(lab: Lab, up: str = "../") -> str:
    return f"[{prose(lab.title)}]({up}labs/{lab.id}.md)"


def _to_topic(topic: Topic, up: str = "../") -> str:
    return f"[{prose(topic.title)}]({up}topics/{topic.name}.md)"


def _references(of: Iterable[Reference]) -> Iterator[str]:
    yield from _section("References", _items(f"[{prose(r.title)}]({r.url})" for r in of))


def _strongest(words: dict[str, Strength]) -> list[tuple[str, Strength]]:
    return sorted(words.items(), key=lambda row: -STRENGTHS[row[1]])


def _observed(key: str, value: str) -> str:
    o = KNOWN.observations[key]
    return f"{prose(o.ask)} {prose(next(v.means for v in o.value if v.value == value))}"


def _patterns(e: Evidence) -> str:
    shown = [_span(p) for p in (*e.text[:4], *e.exception[:4])]
    return f"{', '.join(shown)}{', ...' if len(e.text) > len(shown) else ''}" if shown else ""


def _share(s: Symptom) -> str:
    counts = s.counts[STUDY]
    if not counts.faults:
        return "not in the study"
    return f"{counts.faults} of {STUDY_FAULTS} ({counts.faults / STUDY_FAULTS:.1%})"


def _symptoms() -> Iterator[str]:
    yield "# Symptoms"
    yield (
        "What is seen when distributed training fails, with how often in the study of real faults ([arXiv 2112.06222]"
        "(https://arxiv.org/abs/2112.06222)). Each page says how to recognise the symptom, its causes and their fixes. "
        "`dtdebug explain CODE` prints the same."
    )
    for stage in dict.fromkeys(s.stage for s in KNOWN.symptoms.values()):
        yield f"## {stage.replace('-', ' ').capitalize()}"
        rows = [s for s in KNOWN.symptoms.values() if s.stage == stage]
        yield _table(
            ("Symptom", "Faults in the study", "Causes"),
            ((_to_symptom(s.code, ""), _share(s), str(len(s.cause))) for s in rows),
        )


def _symptom(s: Symptom) -> Iterator[str]:
    yield f"# {s.code} {prose(s.title)}"
    yield _linked(s.summary)
    frameworks = ", ".join(f"{name} {n}" for name, n in s.counts[STUDY].frameworks.items())
    yield f"Stage: {s.stage}. Faults in the study: {_share(s)}{'; ' if frameworks else ''}{frameworks}."
    yield from _section("How to tell it from its neighbours", _linked(s.apart))
    yield from _section("As users tell it", _items(f"“{prose(text)}”" for text in s.says[:6]))
    rows = [(_observed(key, value), word) for key, of in s.observed.items() for value, word in _strongest(of)]
    yield from _section("What goes with it", _items(f"{word}: {text}" for text, word in rows))
    if s.cause:
        yield "## Causes and fixes"
    for c in s.cause:
        yield f"({s.code}-{c.id})=\n### {prose(c.title)}"
        yield prose(c.why)
        yield f"**Fix**: {prose(c.fix)}"
        yield _code(diff, "diff") if (diff := cause_diff(c)) else ""
        yield f"[How it shows, where to see it live](../causes/{s.code}/{c.id}.md)"
    fixes = sorted(s.counts[STUDY].fix_patterns.items(), key=lambda row: -row[1])
    yield from _section("How the study's faults were fixed", _items(f"{prose(name)}: {n}" for name, n in fixes))
    yield from _section("Messages that speak for it", _items(_messages(s)))
    checks = [c for c in CHECKS.values() if s.code in c.symptom]
    yield from _section("Found before it runs", _items(_to_check(c) for c in checks))
    labs = [lab for lab in LABS.values() if lab.symptom == s.code]
    yield from _section("Break it yourself", _items(_to_lab(lab) for lab in labs))
    topics = [topic for topic in TOPICS.values() if s.code in topic.symptoms]
    yield from _section("Learn", _items(_to_topic(topic) for topic in topics))
    yield from _references(s.reference)


def _messages(s: Symptom) -> Iterator[str]:
    """Evidence that names the symptom, strongest first."""
    named = {e.id: e.symptoms[s.code] for e in KNOWN.evidence.values() if s.code in e.symptoms}
    for name, word in _strongest(named):
        e = KNOWN.evidence[name]
        if word != "never" and (shown := _patterns(e)):
            yield f"{word}: {prose(e.means)} {shown}"


def _causes() -> Iterator[str]:
    yield "# Causes"
    yield "Every cause that dtdebug knows, by the kind of its fix (the study's classes)."
    for p in KNOWN.patterns.values():
        yield f"({p.id})=\n## {prose(p.title)}"
        yield prose(p.how)
        rows = [(s, c) for s in KNOWN.symptoms.values() for c in s.cause if c.pattern == p.id]
        yield _items(f"{_to_cause(s, c, '')} ([{s.code}](symptoms/{s.code}.md))" for s, c in rows)


def _cause(s: Symptom, c: Cause) -> Iterator[str]:
    up, pattern = "../../", KNOWN.patterns[c.pattern]
    yield f"# {prose(c.title)}"
    yield f"A cause of {_to_symptom(s.code, up)}."
    yield prose(c.why)
    yield "## Fix"
    yield prose(c.fix)
    yield f"About {MINUTES[c.effort]:g} minutes. Kind: [{prose(pattern.title)}]({up}causes.md#{pattern.id})."
    yield _code(diff, "diff") if (diff := cause_diff(c)) else ""
    yield from _section("How it shows", _items(_shows(c)))
    labs = [lab for lab in LABS.values() if (lab.symptom, lab.cause) == (s.code, c.id)]
    yield from _section("Break it yourself", _items(_to_lab(lab, up) for lab in labs))
    seen = {name for e in c.evidence if e in KNOWN.evidence for name in KNOWN.evidence[e].check}
    seen |= {n for n, check in CHECKS.items() if check.cause == c.id}
    rows = [_to_check(CHECKS[name], up) for name in sorted(seen)]
    yield from _section("Found before it runs", _items(rows))
    yield from _section("Other causes of this symptom", _items(_to_cause(s, o, up) for o in s.cause if o is not c))


def _shows(c: Cause) -> Iterator[str]:
    for name, word in _strongest(c.evidence):
        key, _, value = name.partition("=")
        if value:
            yield f"{word}: {_observed(key, value)}"
        else:
            e = KNOWN.evidence[name]
            yield f"{word}: {prose(e.means)} {_patterns(e)}".rstrip()


def _labs() -> Iterator[str]:
    yield "# Labs"
    yield (
        "How does a fault of distributed training look? Each lab is a small training with one fault, which really "
        "fails on your machine. `start` copies it to a new folder and runs it, `hint` goes from vague to exact, and "
        "`check` runs your file: it is solved when it ends well and has done its work. [Guides](topics.md) explain the "
        "subjects."
    )
    commands = ("list", "start uneven-batches", "hint", "check")
    yield _code("\n".join(f"$ dtdebug lab {command}" for command in commands), "console")
    rows = sorted(LABS.values(), key=lambda lab: (sort_key(lab.symptom), lab.id))
    yield _table(
        ("Lab", "Name", "Shows", "Level", "Ranks"),
        (
            (_to_lab(of, ""), _span(of.id), f"[{of.symptom}](symptoms/{of.symptom}.md)", of.difficulty, str(of.ranks))
            for of in rows
        ),
    )
    yield "```{toctree}\n:hidden:\n\ntopics\n```"


def _all_checks() -> Iterator[str]:
    yield "## All checks"
    rows = (
        (_to_check(c, ""), f"{c.severity}{', off' * c.optional}", "safe" if c.safe else "", ", ".join(c.files))
        for c in known_checks()
    )
    yield _table(("Check", "Severity", "Fix", "Reads"), rows)


def _all_found() -> Iterator[str]:
    """What doctor finds, each with its page."""
    yield "## All findings"
    for f in PREFLIGHT.values():
        yield f"### {f.id} {prose(f.title)}"
        yield (
            f"*{f.area}*; a {f.severity} unless what was measured says otherwise. Such a job shows: "
            + "; ".join(_to_symptom(code, "") for code in f.symptom)
            + "."
        )
        yield f.page
        yield f"Fix: {prose(f.fix)}."
        yield _items(f"[{prose(r.title)}]({r.url})" for r in f.reference)


def _check(c: Check) -> Iterator[str]:
    yield f"# {c.id} {prose(c.title)}"
    if c is UNUSED_IGNORE:
        yield from (f"`{c.name}`: a {c.severity}.", c.page)
        return
    releases = f" Applies to: {prose(c.versions)}." if c.versions else ""
    off = ", off unless it is selected" * c.optional
    yield f"`{c.name}`: a {c.severity}, of {c.precision} precision, in {', '.join(c.files)}{off}.{releases}"
    yield "Such a program shows: " + "; ".join(_to_symptom(code) for code in c.symptom) + "."
    yield c.page
    yield "## Tested examples"
    if o := c.oracle:
        ends = {"hang": "hangs", "error": "ends with an error", "output": "ends, and its output shows it"}
        yield f"A real run on {o.ranks} {'ranks' if o.ranks > 1 else 'rank'} shows the fault: it {ends[o.expect]}."
    for kind, title in (("bad", "Is reported"), ("good", "Is not reported")):
        file = next(f for f in sorted(c.folder.glob(f"{kind}_1*")) if ".fixed" not in f.name)
        yield from (f"### {title}", _example(file))
    yield from _references(c.reference)


def _example(file: Path) -> str:
    files = sorted(f for f in file.rglob("*") if f.is_file()) if file.is_dir() else [file]
    return _joined(_code(f.read_text(encoding="utf-8"), LEXERS.get(f.suffix, "text")) for f in files)


def _lab(lab: Lab) -> Iterator[str]:
    s = KNOWN.symptoms[lab.symptom]
    c = next(c for c in s.cause if c.id == lab.cause)
    needs = ", ".join(map(_span, (*lab.needs.modules, *lab.needs.tools, *lab.needs.linux)))
    yield f"# Lab: {prose(lab.title)}"
    yield f"Shows {_to_symptom(s.code)}; {lab.difficulty}; {lab.ranks} processes, {DEVICES[lab.runs]}; needs {needs}."
    yield _code(f"$ dtdebug lab start {lab.id}\n$ dtdebug lab hint\n$ dtdebug lab check", "console")
    yield from ("## The program", _code((lab.folder / "before.py").read_text(encoding="utf-8"), "python"))
    yield "## Hints"
    for number, hint in enumerate(lab.hints, 1):
        yield from _folded(f"Hint {number}", prose(hint))
    yield from _folded("What it teaches, and the fix", prose(lab.why), _code(lab_diff(lab.id, lab.script), "diff"))
    yield f"The cause: {_to_cause(s, c)}."


def _topics() -> Iterator[str]:
    yield "# Topics"
    yield (
        f"What developers ask about distributed training, the most asked first: the study put {QUESTIONS} of their "
        "questions into groups. `dtdebug learn NAME` prints the same guides."
    )
    for group in groups():
        yield f"## {prose(group.title)}"
        yield f"{group.question_count} questions."
        yield _items(f"{_to_topic(topic, '')}: {prose(topic.gist)}" for topic in group.topics)


def _topic(topic: Topic) -> Iterator[str]:
    yield f"# {prose(topic.title)}"
    yield prose(topic.gist)
    yield topic.body
    yield from _section("What goes wrong", _items(_to_symptom(code) for code in topic.symptoms))
    yield from _section("Found before it runs", _items(_to_check(CHECKS[name]) for name in topic.checks))
    yield from _section("Break it yourself", _items(_to_lab(LABS[name]) for name in topic.labs))
    yield from _references(topic.reference)
