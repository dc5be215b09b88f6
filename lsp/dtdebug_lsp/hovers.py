"""Hovers for the word under the pointer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from lsprotocol import types

from dtdebug_lsp.checking import problems, touching
from dtdebug_lsp.documents import Document
from dtdebug_lsp.positions import Positions
from dtdebug_lsp.words import LineAt, Piece, command_before
from dtdebug_taxonomy.checks import SITE, Check, load, page_address
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.knowledge.loader import STUDY
from dtdebug_taxonomy.knowledge.loader import load as knowledge
from dtdebug_taxonomy.presentation.api_names import method_named
from dtdebug_taxonomy.presentation.hovers import Kind, argument_hover, look_up
from dtdebug_taxonomy.presentation.hovers import hover as guidance
from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import canonical, dotted_name
from dtdebug_taxonomy.source.text import Span

_SECTION = re.compile(r"^## (?P<title>.+)\n(?P<body>(?:(?!## ).*\n?)*)", re.MULTILINE)
_LAUNCHER = re.compile(
    r"torchrun|accelerate launch|python -m torch\.distributed\.(?:run|launch)|#SBATCH|\b(?:srun|sbatch)\b"
    r"|\b(?:salloc|deepspeed|horovodrun)\b(?!\S)"
)
_KINDS = frozenset(
    {"scheduler", "scaler", "optimizer", "optim", "sampler", "loader", "dataloader", "tokenizer", "dataset", "ema"}
)
"""Words that name the kind of an object."""
_SHOWN = ("Why is this bad", "Use instead")


def hover(document: Document, settings: Settings, positions: Positions, position: types.Position) -> types.Hover | None:
    """Return the Markdown for a place, or None."""
    text = document.text
    offset = positions.offset(text, position)
    line = LineAt(text, offset, slashes=document.language in {"json", "jsonc"})
    told = [*_problems(document, settings, offset), *_words(document, line, offset)]
    if not told:
        return None
    markdown = "\n\n---\n\n".join(dict.fromkeys(m for m, _ in told))
    return types.Hover(
        types.MarkupContent(types.MarkupKind.Markdown, markdown), positions.range(text, min(s for _, s in told))
    )


def _problems(document: Document, settings: Settings, offset: int) -> Iterator[tuple[str, Span]]:
    for problem in touching(problems(document, settings), Span(offset, offset)):
        if problem.span.start <= offset < max(problem.span.end, problem.span.start + 1):
            yield of_check(problem.check), problem.span


def _words(document: Document, line: LineAt, offset: int) -> Iterator[tuple[str, Span]]:
    part = line.part()
    if part != "code":
        if (word := line.check()) and (check := load().get(word.text)):
            yield of_check(check), word.span
        if (word := line.symptom()) and (told := of_symptom(word.text)):
            yield told, word.span
    if part == "code" and (said := _of_keyword(document.code, line, offset)):
        yield said
        return
    for word, kind, names in _candidates(document, line, part):
        if told := next((t for n in names if (t := guidance(n, knowledge(), kind))), None):
            yield told, word.span
            return
    source = document.source
    if isinstance(source, Config):
        for path, entry in source.entries:
            here = entry.key_span.start <= offset <= entry.key_span.end
            if here and (told := guidance(path, knowledge(), "deepspeed")):
                yield told, entry.key_span
                return


def _candidates(document: Document, line: LineAt, part: str) -> Iterator[tuple[Piece, Kind, list[str]]]:
    """Yield words at the place: (word, kind, names by which it may be known)."""
    is_python = document.language == "python" or document.path.endswith(".py")
    if part != "code" or not is_python:
        if word := line.option():
            launcher = _LAUNCHER.search(command_before(document.text, word.span.start))
            yield word, "option", [f"{launcher[0]} {word.text}"] if launcher else [word.text]
        if word := line.variable():
            yield word, "environment", [word.text]
    elif word := line.name():
        yield word, "python", list(_names(document.code, line, word))


def _of_keyword(code: Code | None, line: LineAt, offset: int) -> tuple[str, Span] | None:
    """Return the text on the keyword of a call at the place, and its span."""
    word = line.name() if code is not None else None
    if code is None or word is None or not line.is_keyword(word):
        return None
    for call in code.nodes(ast.Call):
        for given in call.keywords:
            start = code.span(given).start
            if given.arg and start <= offset <= start + len(given.arg):
                texts = (argument_hover(api, given.arg) for api in _apis(code, call.func))
                text = next(filter(None, texts), None)
                return (text, Span(start, start + len(given.arg))) if text else None
    return None


def _apis(code: Code, func: ast.expr) -> Iterator[str]:
    """Yield the qualified names of what is called: an imported name, or a method of an object of a known class."""
    written = dotted_name(func)
    if written.partition(".")[0] in code.imports:
        yield code.name(func)
    elif isinstance(func, ast.Attribute):
        made = code.made_by(func.value)
        if len(made) == 1 and (owner := next(iter(made))):
            yield f"{owner}.{func.attr}"
        yield method_named(dotted_name(func.value).rpartition(".")[2], func.attr, _packages(code))


def _packages(code: Code) -> set[str]:
    return {name.partition(".")[0] for name in code.imports.values()}


def _names(code: Code | None, line: LineAt, word: Piece) -> Iterator[str]:
    root, dot, rest = word.text.partition(".")
    imported = code.imports.get(root) if code else None
    if imported:
        yield canonical(f"{imported}{dot}{rest}")
        return
    if not dot:
        return
    owner, _, last = word.text.rpartition(".")
    if code:
        end = word.span.end
        for node in code.nodes(ast.Attribute):
            if node.attr == last and code.span(node).end == end:
                yield from filter(None, _apis(code, node))
                break
    if _may_be(code, owner.rpartition(".")[2], last):
        yield word.text
        yield last


def _may_be(code: Code | None, receiver: str, method: str) -> bool:
    """True if a method that is known by its name alone may be that of this object, by the name of the object.

    `load_state_dict` of a scheduler is not that of a model; the step of an engine is DeepSpeed's in its programs only.
    """
    known = look_up(method, "python")
    entry = known.entry if known is not None else None
    if entry is None or code is None:
        return True
    package, *_, owner, _last = entry.name.split(".") if entry.name.count(".") > 1 else (entry.name, "", "")
    if package not in {"torch", *_packages(code)}:
        return False
    said = receiver.strip("_").lower().rpartition("_")[2]
    return said not in _KINDS or said in owner.lower()


def of_check(check: Check) -> str:
    """Return the short form of a check's page."""
    sections = {m["title"].strip(): m["body"].strip() for m in _SECTION.finditer(check.page)}
    parts = [f"**{check.id}** {check.title} (`{check.name}`)"]
    parts += [f"*{title}*: {sections[title]}" for title in _SHOWN[:1] if title in sections]
    parts += [f"*{title}*:\n\n{sections[title]}" for title in _SHOWN[1:] if title in sections]
    seen = ", ".join(f"{code} {knowledge().symptoms[code].title}" for code in check.symptom)
    return "\n\n".join([*parts, f"Seen as: {seen}. [More]({page_address(check)})"])


def of_symptom(code: str) -> str | None:
    """Return the short form of a symptom's page; None for an unknown code."""
    symptom = knowledge().symptoms.get(code)
    if symptom is None:
        return None
    faults = symptom.counts[STUDY].faults
    seen = f" {faults} of 637 faults in the study." if faults else ""
    return f"**{symptom.code}** {symptom.title}\n\n{symptom.summary.strip()}{seen} [More]({symptom_address(code)})"


def symptom_address(code: str) -> str:
    """Return the address of a symptom's page on the documentation site."""
    return f"{SITE}/symptoms/{code}/"
