"""Removes prefixes of launchers, loggers and log collectors from a line, one token at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from dtdebug_taxonomy.text.lazy_re import lazy_re

LONGEST = 400
"""Characters of a line within which its prefixes end."""
_TOKENS = 12
"""Maximum number of prefixes of a line."""
_LEVELS = "DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL"
_ZONE = r"(?:Z| ?[+-]\d\d:?\d\d| UTC)?"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_EPOCH = rf"(?:{_CLOCK}|\d\d:\d\d:\d{{10}}\.\d{{1,9}})"
"""A clock, or absl's output before it knows the zone."""
_DATE = rf"(?:\d{{4}}[-/]\d\d[-/]\d\d[T _]|\d\d[-/.]\d\d[-/.]\d{{2,4}} ){_CLOCK}{_ZONE}"
_AFTER = r"(?: (?:[|-]|INFO|ERROR)? ?(?=[\w\[]{1,2}\S{0,80} (?:[|-] )?)|: |:(?=[A-Za-z])| [|-] |[ \t]|(?=[\[<({]))?"

_WORD = r"(?:(?:[Gg]lobal|GLOBAL)[ _-]?)?(?:rank|Rank|RANK)"
"""Never `[Rank 3]` alone, with which PyTorch's own messages begin."""
_TAGGED = (
    r"\[(?:[^\[\],\s]{1,100},)?(?:mpirank:(?P<rank>\d{1,7})|(?P<task>\d{1,7}))(?:,[\w.-]{1,100})?\]"
    r"(?:\[(?P<host>[\w.-]{1,100}):\d{1,9}\])?<(?P<stream>std\w{3,4})>:? ?"
)
_BRACKET = (
    r"\[(?:rank|RANK) ?(?P<rank>\d{1,7})\]:? ?",
    r"\[(?:default|[A-Za-z]\w{0,40}?(?<!\d)(?=\d{1,5}\]:))(?P<local>\d{1,7})\]: ?|\[default(?P<local2>\d{1,7})\] ?",
    rf"\[{_WORD} ?[:=] ?(?P<rank>\d{{1,7}})\]:? ?(?:[|]{{2}} )?",
    r"\[\d{1,9}\] (?=\[(?:rank|default) ?\d{1,7}\]:)",
    _TAGGED,
    r"\[(?P<rank>\d{1,7})\]\s?:(?= \S|\S| {2,12}File) ?",
    rf"\[(?P<level>[IWEFC])(?:\d{{4}} {_CLOCK})?(?: \d{{1,9}})? ?[\w./-]{{1,100}}:\d{{1,6}}\] ?",
    rf"\[(?P<time>\d\d-\d\d {_CLOCK})\] ",
    rf"\[(?P<time>{_DATE}|{_CLOCK}|[ \d]{{1,10}}\.\d{{1,9}})(?: TP(?P<rank>\d{{1,5}}))?\](?: - |: | )?",
    rf"\[(?P<level>{_LEVELS}) {{0,4}}(?:\|[\w./-]{{1,80}}:\d{{1,6}})?\](?: - | )?",
    rf"\[(?P<time>{_DATE}) (?P<level>[IWEFC]) \d{{1,9}} \d{{1,9}}\] (?:\(\w{{1,9}}\) )?(?:\S{{1,80}}\.cc:\d{{1,6}}: )?",
    rf"\[NeMo (?P<level>[IWEC]) (?P<time>{_DATE}) [\w.-]{{1,100}}:\d{{1,6}}\] ?",
    r"\[pod/(?P<host>[\w.-]{1,250})/[\w.-]{1,100}\] ",
    r"\[[\w./-]{1,80}\.py:\d{1,6}(?::\w{1,60})?\] ?(?:\[Rank (?P<rank>-?\d{1,7})\] ?)?",
    rf"\[[\w.]{{1,80}}\](?=\[(?:{_LEVELS})\])|\[[\w.]{{1,80}}\] - ",
)
_DIGIT = (
    rf"(?P<time>{_DATE}){_AFTER}",
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d) (?=\[)",
    rf"(?P<time>\d\d-\d\d {_CLOCK})(?: (?=\[?[\w./-]{{1,80}}\.py:\d)|$)",
    rf"(?P<time>{_CLOCK})(?: - |: | )",
    r"(?P<time>\d{10}\.\d{1,9})(?::? )",
    r"\d\d[OE][+ ] ?",
    r"(?P<host>\d{1,3}(?:\.\d{1,3}){3})(?:: | \[(?P<task>\d{1,5})\] )",
    r"(?P<task>\d{1,7}): ",
)
_ROUND = lazy_re(
    r"\((?:(?:Worker_TP(?P<rank3>\d{1,5})"
    r"|(?P<actor>[\w.:<>-]{1,80})(?:\([\w.:-]{1,80}\))?(?:\[rank=(?P<rank2>\d{1,7})\]| rank=(?P<rank4>\d{1,7}))?) )?"
    r"pid=(?P<pid>\d{1,9})"
    r"(?:, ip=(?P<host>[\w.:-]{1,80}))?(?:, rank=(?P<rank>\d{1,7}))?"
    r"[^()\n]{0,60}\) ?"
)
_SKYPILOT = lazy_re(
    r"\((?:[\w.-]{1,80}, )?(?P<host>head|worker\d{1,5}), rank=\d{1,5}, pid=\d{1,9}(?:, ip=[\w.:-]{1,80})?\) ?"
)
"""Its rank is the node's, and its process starts the ranks.
Source: https://github.com/skypilot-org/skypilot/pull/1380"""
_SYSLOG = r"(?P<host>[\w.-]{1,100}) [\w./@-]{1,80}\[(?P<pid>\d{1,9})\]: "
_DETERMINED = r"(?P<host>[0-9a-f]{8}) (?:\[rank=(?P<rank>\d{1,7})\] )?\|\| ?"
_NO_CONTAINER = r"\|\| (?=(?:" + _LEVELS + r"): )"
"""Prefix of Determined's own messages about the task."""
_LOGURU = r"\| [\w.]{1,80}:\S{1,60}:\d{1,6} - "
_LETTER = (
    rf"{_WORD}[ _=:#-]{{0,2}}(?P<rank>\d{{1,7}}) {{0,30}}\| ?",
    rf"{_WORD}(?P<rank>\d{{1,7}})\[(?P<pid>\d{{1,9}})\]\[\w{{1,60}}\]: ?",
    rf"(?P<time>[A-Z][a-z]{{2}} [ \d]?\d {_CLOCK})(?: (?=(?:[\w.-]{{1,100}} [\w./@-]{{1,80}}\[\d{{1,9}}\]: )?)|$)",
    rf"(?P<time>[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [ \d]?\d {_CLOCK}(?: [A-Z]{{3,4}})? \d{{4}})(?:: | |(?=[\[<]))",
    rf"(?P<level>[IWEF])\d{{4}} {_EPOCH} {{1,8}}\d{{1,9}} [\w./-]{{1,200}}:\d{{1,6}}\] ?",
    _SYSLOG,
    _DETERMINED,
    r"(?P<host>[\w.-]{1,100}/[\w.-]{1,100})\[[a-z][\w.-]{0,60}\]: ",
    r"(?P<host>[\w.-]{1,100}/\d{1,5}) (?=\[(?:rank|default) ?\d{1,7}\]:|[IWEF]\d{4} )",
    r"(?P<host>[\w.-]{1,100}) \[(?P<stream>stdout|stderr)\] ",
    rf"[\w.]{{1,80}} - (?P<level>{_LEVELS}) - ",
    rf"(?P<level>{_LEVELS}) {{2,8}}(?=[A-Za-z\[])",
    rf"(?P<level>{_LEVELS}) {{0,8}}(?:- |:) ?{_WORD}[ _-]?(?P<rank>\d{{1,7}})(?: - |: ?)",
    rf"(?P<level>{_LEVELS}) {{0,8}}(?:- [\w.]{{1,80}} - |{_LOGURU}|:[\w.]{{1,80}}:|: | |:(?=\d{{4}}-))",
    r"(?P<host>[\w.-]{1,100}[-_]\d{1,5}) {0,30}\| ?",
    r"(?P<stream>stdout|stderr) [FP] ",
    r"[\w./-]{1,80}\.py:\d{1,6}\](?: |$)",
)
_BLANK = (
    r"(?=[ \d]{2,5}: ) {1,4}(?P<task>\d{1,4}): ",
    r" {1,12}(?=(?:\d{4}-\d\d-\d\d \d\d:\d\d )?\[(?:rank|default) ?\d{1,7}\]:)",
    r"[|] (?=\S)",
)
"""srun pads task numbers to the width of the largest; a number further to the right belongs to a list."""


def _compile_all(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(lazy_re(pattern) for pattern in patterns)


_BY_START: dict[str, tuple[re.Pattern[str], ...]] = {
    "[": _compile_all(_BRACKET),
    "(": (_ROUND, _SKYPILOT),
    " ": _compile_all(_BLANK[:2]),
    "|": (lazy_re(_NO_CONTAINER),),
    **dict.fromkeys("0123456789", _compile_all((*_DIGIT, _SYSLOG, _DETERMINED))),
    **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_", _compile_all(_LETTER)),
}
_LOGFMT = lazy_re(
    r"(?:[A-Za-z_][\w.]{0,60}=(?:\"(?:[^\"\\]|\\.){0,200}\"|[^\s\"]{0,200}) ){0,12}"
    r"msg=(\"(?:[^\"\\]|\\.){0,4000}\")"
)
"""`ts=... level=info msg="..."`."""
_RANK_WORD = lazy_re(r"(?i)(?:global[ _-]?)?rank(?:[ _=:#]{0,3}|-)(\d{1,7})(?!\d)")
_OTHER_RANK = lazy_re(
    r"(?i)(?:^|[^a-z])(?:node|machine|host|group|replica|data|tensor|model|pipe(?:line)?|context|expert|sequence|parallel"
    r"|mesh|stage|shard|[a-fh-z]|[a-z]{2,3})[ _-]{1,2}$"
)
_LOCAL_WORD = lazy_re(r"(?i)(?:local[ _-]?rank[ _=:#-]{0,3}|\b(?:gpu|cuda|device)[ :#=])(\d{1,5})(?!\d)")
_NUMBER = lazy_re(r"(?:^\W{0,3}|[<\[({#])(\d{1,7})\W{1,4}$")
_COLOUR = lazy_re(r"(?:\x1b|#033)\[[0-9;?]{0,20}[A-Za-z]|\[(?:3[0-7]m(?=\()|0m(?= ))")
"""Colour codes: raw, as syslog writes them, and what a web page leaves of them before Ray's prefix."""
_REPEATED = lazy_re(r" \[repeated \d{1,7}x across cluster\](?: \(Ray deduplicates logs.{0,300})?$")
_MESSAGE = ("log", "line", "message", "MESSAGE", "msg", "text", "body", "textPayload", "@message", "content", "event")
_RANKS = ("rank", "global_rank", "RANK", "world_rank")
_LOCALS = ("local_rank", "LOCAL_RANK")
_HOSTS = ("host", "hostname", "pod", "pod_name", "instance", "node", "_HOSTNAME", "kubernetes.pod_name")
_TIMES = ("time", "ts", "timestamp", "@timestamp", "asctime")
_LEVEL_KEYS = ("level", "levelname", "severity")
_JSON = 200_000
"""Maximum number of characters of a line that is parsed as JSON."""


_NUMBERS = frozenset(("rank", "local", "task", "pid"))
_ALIKE = bytes.maketrans(b"123456789", b"000000000")


class ParsedLine(NamedTuple):
    """Fields from the prefixes of one line, and the line without them."""

    body: str
    rank: int | None = None
    local: int | None = None
    task: int | None = None
    """Number of a task: the rank, or the node if each node has one task that starts its ranks."""
    host: str = ""
    pid: int = 0
    actor: str = ""
    """Name of the process in Ray and similar frameworks: `TrainController`."""
    time: str = ""
    stream: str = ""
    level: str = ""


_NONE = ParsedLine("")


def without_prefixes(line: str, learnt: re.Pattern[str] | None = None, *, numbered: bool = True) -> ParsedLine:
    """Remove all prefixes. `learnt` matches prefixes learnt from the file; `numbered` accepts `3: ` as a prefix."""
    line = line.rstrip("\r")
    if "\r" in line:  # a progress bar: keep what is finally shown
        line = line[line.rfind("\r") + 1 :]
    if "\x1b" in line or "#033[" in line or "m(" in line[:8]:
        line = _COLOUR.sub("", line)
    if " across cluster]" in line[-LONGEST:] and (repeated := _REPEATED.search(line[-LONGEST:])):  # by Ray
        line = line[: len(line) - len(repeated[0])]
    head = line[:LONGEST]
    if not head:
        return _NONE
    parts, at = _parts(digits_alike(head), learnt, numbered)
    known: dict[str, Any] = {}
    for name, begin, end in parts:
        if name:
            known[name] = int(head[begin:end]) if name in _NUMBERS else head[begin:end]
        else:
            _read_learnt_prefix(head[begin:end], known)
    return ParsedLine(line[at:], **known)


def digits_alike(text: str) -> bytes:
    """Return the text with each digit replaced by 0."""
    return text.encode(errors="surrogatepass").translate(_ALIKE)


@lru_cache(maxsize=4096)
def _parts(
    alike: bytes, learnt: re.Pattern[str] | None, numbered: bool
) -> tuple[tuple[tuple[str, int, int], ...], int]:
    """Return (name, begin, end) of each field in the prefixes, "" naming a learnt prefix, and the end of all prefixes.

    The same for all lines that differ only in digits: no prefix depends on their values.
    """
    head = alike.decode(errors="surrogatepass")
    parts: list[tuple[str, int, int]] = []
    at = 0
    for _ in range(_TOKENS):
        found = learnt.match(head, at) if learnt is not None and ".cpp:" not in head[:at] else None
        if found is not None and found.lastgroup:
            parts.append((found.lastgroup, *found.span(found.lastgroup)))
        elif found is not None:
            parts.append(("", *found.span()))
        else:
            found = _next(head, at)
            if found is None or (not numbered and "task" in found.groupdict() and found[0].lstrip()[0].isdigit()):
                break
            parts += (
                (name.rstrip("234"), *found.span(name))
                for name, value in found.groupdict().items()
                if value is not None
            )
        at = found.end()
    return tuple(parts), at


def _next(head: str, at: int) -> re.Match[str] | None:
    for pattern in _BY_START.get(head[at : at + 1], ()):
        found = pattern.match(head, at)
        if found is not None and found.end() > at:
            return found
    return None


def _read_learnt_prefix(prefix: str, known: dict[str, Any]) -> None:
    """Read a learnt prefix into `known`: a rank, a device, a number, else a host or a process."""
    if local := _LOCAL_WORD.search(prefix):
        known["local"] = int(local[1])
        prefix = prefix.replace(local[0], "")
    ranks = [found for found in _RANK_WORD.finditer(prefix) if not other_rank(prefix[: found.start()])]
    if ranks:
        known["rank"] = int(ranks[0][1])
    elif local is None and (number := _NUMBER.search(prefix)):
        known["task"] = int(number[1])
        if prefix[: number.start()].strip():
            known["host"] = prefix[: number.start()].strip()
    elif local is None:
        name = prefix.strip(" \t|:>-[]()")
        first = name.split(" ")[0]
        known["host"] = (first if any(map(str.isdigit, first)) else name)[:100]


def other_rank(before: str) -> bool:
    """True if the word rank that follows is a node's, or a position in a group: `node_`, `dp `, `group-`."""
    return bool(_OTHER_RANK.search(before[-40:]))


def records(line: str) -> Iterator[ParsedLine] | None:
    """Return the lines in a line of JSON, each with its fields; None if it is not a log record."""
    if not line.startswith("{") or not line.rstrip().endswith("}") or len(line) > _JSON:
        return None
    import json

    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return _lines_of(data) if isinstance(data, dict) else None


def unwrap_record(line: str, row: ParsedLine) -> Iterator[ParsedLine] | None:
    """Return the lines of a JSON or logfmt record that has prefixes itself; None if it is not such a record."""
    inside = records(line[line.find("{") :]) if row.body.startswith("{") else None
    if inside is None and (found := _LOGFMT.match(row.body)):
        import json

        try:
            inside = map(without_prefixes, json.loads(found[1]).rstrip("\n").split("\n"))
        except ValueError:
            return None
    return None if inside is None else (_merge_prefixes(each, row) for each in inside)


def _merge_prefixes(inner: ParsedLine, outer: ParsedLine) -> ParsedLine:
    """Merge prefixes; the inner ones take precedence over those around them."""
    known = {name: value for name, value in inner._asdict().items() if value not in (None, "")}
    return outer._replace(**{**known, "pid": inner.pid or outer.pid, "body": inner.body})


def _lines_of(data: Mapping[str, Any]) -> Iterator[ParsedLine] | None:
    inner = data.get("data")
    rows = data.get("streams") or (inner.get("result") if isinstance(inner, dict) else None) or [data]
    if not isinstance(rows, list):
        return None
    texts: list[tuple[Mapping[str, Any], str, str]] = []
    for row in rows[:10_000]:
        if not isinstance(row, dict):
            continue
        fields = _flat(row)
        values = row.get("values")
        if isinstance(values, list):  # Loki: [time, line] each
            texts += ((fields, str(v[0]), v[1]) for v in values[:10_000] if _is_pair(v))
            continue
        message = next((fields[name] for name in _MESSAGE if isinstance(fields.get(name), str)), None)
        if message is None and isinstance(fields.get("message.message"), str):  # torchelastic's error file
            message = fields.get("message.extraInfo.py_callstack") or fields["message.message"]
        trace = next(
            (fields[n] for n in ("exc_info", "traceback", "stack_trace") if isinstance(fields.get(n), str)), ""
        )
        error = _first(fields, ("error", "err"))
        if isinstance(message, str) and error and error not in message:  # as Go's structured loggers split them
            message = f"{message}: {error}"
        if isinstance(message, str):
            texts.append((fields, _first(fields, _TIMES), f"{message}\n{trace}" if trace else message))
    return _split(texts) if texts else None


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[1], str)


def _split(texts: list[tuple[Mapping[str, Any], str, str]]) -> Iterator[ParsedLine]:
    for fields, time, text in texts:
        rank, local = _first(fields, _RANKS), _first(fields, _LOCALS)
        inside = records(text) if text.startswith("{") else None  # a collector's record of a logger's record
        for inner in inside if inside is not None else map(without_prefixes, text.rstrip("\n").split("\n")):
            yield inner._replace(
                rank=int(rank) if inner.rank is None and rank.isdecimal() and len(rank) < 8 else inner.rank,
                local=int(local) if inner.local is None and local.isdecimal() and len(local) < 6 else inner.local,
                host=inner.host or _first(fields, _HOSTS),
                time=inner.time or time,
                stream=inner.stream or _first(fields, ("stream",)),
                level=inner.level or _first(fields, _LEVEL_KEYS).upper(),
            )


def _flat(data: Mapping[str, Any], lead: str = "", depth: int = 4) -> dict[str, Any]:
    """Return fields by name and by path; outer fields take precedence."""
    found: dict[str, Any] = {}
    for key, value in list(data.items())[:100]:
        if isinstance(value, dict) and depth:
            for name, inner in _flat(value, "", depth - 1).items():
                found.setdefault(f"{lead}{key}.{name}", inner)
                found.setdefault(name, inner)
        else:
            found[f"{lead}{key}"] = value
    return found


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((str(fields[n]) for n in names if isinstance(fields.get(n), str | int) and fields[n] != ""), "")
