"""Hostile text, exceptions and saved files: nothing raises, nothing escapes, everything stays small."""

import io
import json
import re
import tracemalloc
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from places import TESTS
from rich.console import Console

from dtdebug.capture import capture, describe, from_traceback
from dtdebug.presentation.diagnosis_card import LIMIT, bundle, small, to_html
from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.log_files import excerpt as log_excerpt
from dtdebug.storage import budget
from dtdebug.wizard.session import Session, from_json, to_json
from dtdebug.wizard.terminal import run
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis, diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.ranks import Frame, RankState
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot
from dtdebug_taxonomy.presentation.text import to_markdown, to_text
from dtdebug_taxonomy.text.clauses import hits_in_words
from dtdebug_taxonomy.text.pattern_matcher import Matcher, index_of

HOSTILE = TESTS / "samples" / "hostile"
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
"""What may never reach a terminal, a notebook or a report."""
BOUND = 60_000
"""Characters that no output exceeds, whatever went in."""


def _messages() -> list[str]:
    """Texts that the knowledge's patterns are near to: the patterns themselves without their syntax."""
    k = load()
    patterns = [p for e in k.evidence.values() for p in (*e.text, *e.says)]
    patterns += [p for o in k.observations.values() for v in o.value for p in (*v.text, *v.says)]
    return [re.sub(r"\\[a-z]|\{\d+,\d+\}|[\\()?]", "", p).partition("|")[0] for p in patterns]


PIECES = [
    "\x1b[31m", "\x1b]0;owned\x07", "\x1b]8;;http://evil\x1b\\", "\x9b2J", "\x1b", "\x1b[", "\x07", "\x00", "\b",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</pre></div>", "&lt;", "javascript:alert(1)",
    "[red]", "[/]", "[link=http://evil]x[/link]", "```", "~~~", "# head", "| a | b |", "![x](http://evil/x.png)",
    "[x](javascript:alert(1))", "<details>", "`", "**", "$x$", "\u202e", "\u2066", "\u200b", "\ufeff", "\ud800",
    "\udfff", "\u0130", "\u2028", "\U000e0041", "\x7f", "\r", "\r\n", "\n", "\n\n", " ", "\t", "50%|###   | 1/2\r",
    "[rank7]: ", "[default3]:", "[1,2]<stderr>:", "12: ", "(RayTrainWorker pid=1, ip=1.2.3.4) ",
    "Traceback (most recent call last):\n", '  File "/a/b.py", line 1, in f\n', "token=", "password: ", "hf_", "not ",
    "-----BEGIN PRIVATE KEY-----", "://a:b@", "but ", "...", ", ", "no error, ", "x" * 2_100, "\u00e9" * 300,
    "9" * 400, "key=" * 200, "error " * 100,
]  # fmt: skip
TEXTS = st.lists(
    st.one_of(st.sampled_from(PIECES), st.sampled_from(_messages()), st.text(max_size=20)), max_size=40
).map("".join)


TAGS = {"div", "b", "ul", "li", "details", "summary", "small", "code", "i", "span", "pre"}
"""What a diagnosis is made of in HTML."""


class _Tags(HTMLParser):
    """The tags and attributes that a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, ...]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add((tag, *(name for name, _ in attrs)))


def shown(d: Diagnosis, snapshot: Snapshot) -> list[str]:
    """All outputs of a diagnosis, each of which is checked for what no output may do."""
    html, saved = to_html(d), json.dumps(small(d), ensure_ascii=False)
    tags = _Tags()
    tags.feed(html)
    markdown = to_markdown(d, snapshot)

    assert len(json.dumps(small(d), ensure_ascii=False, separators=(",", ":")).encode()) < LIMIT
    assert {tag for tag, *_ in tags.seen} <= TAGS
    assert {name for _, *names in tags.seen for name in names} <= {"class", "style", "open"}
    outside = re.sub(r"(?ms)^ *(`{3,})\w*\n.*?^ *\1$", "", markdown)  # what is not a block of code
    assert [] == re.findall(r"(?<!\\)`|<(?!/?details>|/?summary>)", outside)
    texts = [to_text(d), to_text(d, advice=5), markdown, html, saved, str(bundle(d)["text/plain"])]
    for text in texts:
        assert not FORBIDDEN.search(text)
        assert len(text) < BOUND
    return texts


@given(TEXTS, TEXTS)
def test_any_text_is_diagnosed_and_shown_safely(output, situation):
    """Read, cleaned, diagnosed and shown in every form."""
    try:
        excerpt = log_excerpt.read_excerpt(io.BytesIO(output.encode("utf-8", "surrogatepass")), "log")
    except log_excerpt.LogError:  # too many zero bytes: read from elsewhere, then
        excerpt = log_excerpt.Excerpt(output, (), len(output))
    snapshot = Snapshot(situation=clean(situation), output=clean(excerpt.text), first_lines=excerpt.first_lines)

    shown(diagnose(load(), snapshot), snapshot)


@given(TEXTS, TEXTS)
def test_a_snapshot_that_nobody_cleaned_is_shown_safely_too(text, name):
    """Whoever makes a snapshot through the API need not know about terminals."""
    info = ExceptionInfo(
        type=name, message=text, notes=(text, name), frames=(Frame(text, 1, name, text),), rank=10**9, signal=name[:50]
    )
    snapshot = Snapshot(
        situation=text,
        output=name + text,
        exception=info,
        notes=(text, name) * 20,
        versions={"torch": text[:100] + "+cpu"},
        environment={"NCCL_DEBUG": text},
        ranks=(RankState(backend=name, host=text, rank=3, world_size=2, local_world_size=1),),
    )

    shown(diagnose(load(), snapshot), snapshot)


@given(TEXTS)
def test_cleaning_leaves_nothing_that_steers_and_is_complete(text):
    """Cleaning twice changes nothing more, and the result can be encoded."""
    once = clean(text)

    assert not FORBIDDEN.search(once)
    assert once == clean(once)
    assert once == once.encode().decode()


@settings(max_examples=25)
@given(TEXTS, st.lists(TEXTS, max_size=6))
def test_the_terminal_wizard_shows_hostile_text_as_it_is(text, lines):
    """Answers and captured text are neither markup nor escapes, and nonsense is asked again."""
    replies = iter([*lines, "", "w", "h", "l", "?", "q"])

    def ask(prompt: str) -> str:
        line = next(replies, None)
        if line is None:
            raise EOFError
        return line

    out = io.StringIO()
    console = Console(file=out, width=80, color_system=None, highlight=False)
    run(Session(snapshot=Snapshot(situation=clean(text), output=clean(text))), console=console, ask=ask)

    assert not FORBIDDEN.search(out.getvalue())


@given(TEXTS)
@example("password: password: A")
def test_a_saved_session_is_cleaned_when_it_is_read(text):
    """Whatever stands in the file, what is resumed is a session of clean text, or none."""
    broken = json.dumps({"v": 1, "snapshot": {"situation": text, "notes": [text]}, "steps": []})
    session = from_json(broken.encode())

    if session is not None:  # half a character has no UTF-8 form: such a file is broken
        assert not FORBIDDEN.search(session.snapshot.situation + session.snapshot.notes[0])
        assert session == from_json(to_json(session))


@given(st.binary(max_size=300))
@example(b'{"v":' + b"[" * 100_000)
@example(b'{"snapshot":{"exception":' + b'{"type":"E","causes":[' * 900 + b"]}" * 900 + b"}}")
@example(b'{"v":1e999,"snapshot":{}}')
@example(b'{"v":1,"snapshot":{"child_ranks":' + b"9" * 5_000 + b"}}")
@example(b'{"v":1,"snapshot":{"first_lines":[[9,1],[-5,3],[2,2]],"output":"error"}}')
def test_a_broken_session_file_is_no_session(data):
    """Any bytes are a session that can be diagnosed, or None."""
    session = from_json(data)
    if session is not None:
        shown(session.diagnosis(), session.snapshot)


@given(TEXTS)
def test_any_text_is_read_as_a_traceback(text):
    """What a child printed may be anything."""
    info = from_traceback(text, 1)

    assert not FORBIDDEN.search(info.type + info.message + "".join(f.file + f.function for f in info.frames))
    assert len(info.message) <= 16_000


def deep(levels: int) -> BaseException:
    """A chain of causes."""
    first = last = RuntimeError("outermost")
    for n in range(levels):
        last.__cause__ = KeyError(n)
        last = last.__cause__
    return first


def circle() -> BaseException:
    """Two exceptions, each the cause of the other."""
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    return one


def bush(levels: int) -> BaseException:
    """A group in which each member is the same group again: as a tree it has 16 ** levels leaves."""
    inner: Exception = ValueError("leaf")
    for _ in range(levels):
        inner = ExceptionGroup("\x1b[31mgroup", [inner] * 16)
    return inner


class NastyError(Exception):
    """Every attribute that is read raises."""

    def __str__(self) -> str:
        raise RecursionError

    def __getattribute__(self, name: str) -> object:
        raise ValueError(name)


def named(name: str) -> BaseException:
    """An exception whose class has a hostile name, note and rank."""
    error = type(name, (Exception,), {"__module__": "\x1b[2J", "error_index": 10**6000, "exit_code": True})()
    error.__notes__ = ["\x1b[31m" * 1000] * 1000
    return error


def compiled(file: str) -> BaseException:
    """An exception from a source file of a hostile name."""
    try:
        exec(compile("1/0", file, "exec"), {})
    except ZeroDivisionError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    "make",
    [
        lambda: deep(5_000),
        circle,
        lambda: bush(7),
        lambda: ExceptionGroup("huge", [ValueError("x" * 1000)] * 20_000),
        NastyError,
        lambda: named("<b>\x1b[31m[red]"),
        lambda: compiled("\x1b]0;owned\x07<script>\udce9"),
        lambda: RuntimeError("\ud800"),
        lambda: RuntimeError("RuntimeError: NCCL error\n" * 500_000),
    ],
    ids=["deep", "circle", "bush", "huge group", "nasty", "name", "file", "surrogate", "long"],
)
def test_any_exception_is_described_and_shown(make):
    """Circles, groups of groups and attributes that raise: a few exceptions are kept, none twice."""
    error = make()
    info = describe(error)
    kept = [info]
    for one in kept:
        kept += one.causes

    assert len(kept) <= 48
    snapshot = capture(error, devices=False)
    shown(diagnose(load(), snapshot), snapshot)


class Stream:
    """A stream of so many bytes that repeats a piece; it never exists as a whole."""

    def __init__(self, piece: bytes, size: int) -> None:
        self._block = piece * (log_excerpt.CHUNK // len(piece) + 1)
        self._left = size

    def read(self, size: int) -> bytes:
        part = self._block[: min(size, self._left)]
        self._left -= len(part)
        return part


@pytest.mark.parametrize(
    ("piece", "size"),
    [
        (b"[rank3]: step 17 loss 0.25 fine\n", 60 << 20),
        (b"x" * 4096, 60 << 20),
        (b"50%|###   | 1/2\r", 60 << 20),
        (b"\n", 20 << 20),
        (b"Error\n", 20 << 20),
        (b"\xff\xfe\x80error\n", 20 << 20),
    ],
    ids=["lines", "one line", "bars", "empty lines", "errors", "not utf-8"],
)
def test_memory_is_bounded_whatever_the_size(piece, size):
    """A log is never held as a whole, and its excerpt is bounded."""
    tracemalloc.start()
    try:
        with budget.one_command(waits=True):  # tracing takes several times the processor time that a log may take
            excerpt = log_excerpt.read_excerpt(Stream(piece, size), "log")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert size == excerpt.size
    assert len(excerpt.text) <= log_excerpt.TAIL + log_excerpt.REGIONS + 20_000
    assert peak < 20 << 20


def test_a_stream_that_gives_single_bytes_is_gathered(monkeypatch):
    """What a pipe gives piece by piece is looked at in large pieces: else a long line would be copied for each."""
    looked = []
    add = log_excerpt.LogLines.add
    monkeypatch.setattr(
        log_excerpt.LogLines, "add", lambda parts, chunk, name: (looked.append(1), add(parts, chunk, name))
    )

    class Drop(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(1)

    log_excerpt.read_excerpt(Drop(b"50%\r" * 20_000), "log")

    assert [1] == looked


def test_searches_are_bounded_whatever_the_number_of_lines(monkeypatch):
    """A thousand times the lines of thousands of ranks cost no more searches than a hundred."""
    from dtdebug_taxonomy.text import pattern_matcher

    counts = []

    def searches(lines: int) -> int:
        counts.clear()
        text = "\n".join(f"[rank{n}]: NCCL error somewhere {n}" for n in range(lines))
        list(Matcher(index_of([("a", "NCCL error here"), ("b", r"NCCL error \w{1,40} there")])).hits(text))
        return len(counts)

    real = pattern_matcher._matches

    def counted(pattern, text, lines, **more):
        lines = list(lines)
        counts.extend(lines)
        return real(pattern, text, lines, **more)

    monkeypatch.setattr(pattern_matcher, "_matches", counted)

    assert 4 * pattern_matcher.LINES_PER_LITERAL >= searches(200_000)
    assert searches(200_000) == searches(1_000)


def test_a_rank_is_read_from_its_own_line_after_a_line_that_was_cut():
    """Offsets of hits and of prefixes belong to the same text."""
    output = "x" * 50_000 + "\n[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"

    assert (5,) == diagnose(load(), Snapshot(output=output)).culprits


def test_a_denial_is_heard_after_a_line_that_was_cut():
    """The words before a hit are those that stand before it."""
    matcher = Matcher(index_of([("oom", "out of memory")]))

    assert [] == list(hits_in_words(matcher, "y " * 5_000 + "\nit is not out of memory"))


@pytest.mark.parametrize("path", sorted(HOSTILE.glob("*")), ids=lambda path: path.name)
def test_what_was_found_before_stays_fixed(path):
    """Inputs that once failed, as output, as words, as traceback and as saved session."""
    data = path.read_bytes()
    text = data.decode("utf-8", "surrogatepass")
    from_json(data)
    from_traceback(text, None)
    for snapshot in (
        Snapshot(output=text, situation=text, notes=(text,)),
        Snapshot(output=clean(text), situation=clean(text)),
    ):
        shown(diagnose(load(), snapshot), snapshot)
