"""Separates what a person wrote from what a program printed in a text with both: an issue, a mail, a chat."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, islice, pairwise

from dtdebug_taxonomy.logs.prefixes import without_prefixes
from dtdebug_taxonomy.logs.progress import PROGRESS
from dtdebug_taxonomy.text import shown_code

_LONGEST = 200_000
"""Maximum number of characters of a person's text; a longer one is a log."""
_LISTING = 1_000
"""Lines from which a text without fences that begins with a statement is a log that begins with its own program."""
_FEW_LINES, _LETTERS = 8, 0.75
"""Maximum lines of a description without signs of its writer, and its minimum share of letters and blanks."""
_FENCE = re.compile(r"\s{0,3}(?:`{3,}[^`]{0,200}$|~{3,})")
"""As in CommonMark: no further tick follows the opening ticks."""
_INLINE = re.compile(r"\s{0,3}```(?P<code>[^`]{1,2000})```\s{0,3}$")
_MINE = re.compile(r"(?<!\[)\bI\b(?! ?[/:.\d\]])|\b[Mm]y\b")
_PERSON = re.compile(
    rf"{_MINE.pattern}"
    r"|\bI'(?:m|ve|d|ll)\b|\b[Oo]ur\b|\b[Aa]ny(?:one|body)?\b.{0,40}\?"
    r"|\b[Aa]ny (?:advice|help|ideas?|hints?|suggestions?)\b"
    r"|\b[Ww]e (?:see|have|are|use|run|get|train|tried)\b"
    r"|^\W{0,3}(?:[Hh](?:i|ello|ey)|[Tt]hanks?|[Dd]ear)\b|(?<![=:])\?\s*$|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]{4}"
)
"""Text that only a person writes; few programs print Chinese, Japanese or Korean."""
_MACHINE = re.compile(
    r"""(?x)
      Traceback\ \(most | ^\s{0,12}File\ " | ^\s{4} | ^[\s#>|*.+=_-]{0,200}$
    | ^\s{0,3}(?:\w{1,40}\.){0,8}\w{0,60}(?:Error|Exception|Warning|Interrupt)\b\W{0,3}(?::|$)
    | ^\s{0,3}export\ \w{1,40}=
    | ^\W{0,2}\d{4}[-/]\d\d[-/]\d\d[\ T_]\d\d:\d\d
    | ^\s{0,4}warnings\.warn\( | ^\s{0,4}(?:Warning|Normal)\s{1,12}[A-Z]\w{2,40}\s
    | ^\S{1,200}\.(?:py|cc|cpp|cu|cuh|h):\d | ^(?:\$|>>>|%|!|<!--|-->)\ ? | \d%\|
    | \[rank\d{1,6}\]: | \bWorkNCCL\( | \bNVRM:\ Xid\b
    | \bNCCL\ (?:INFO|WARN|TRACE)\b | (?<!=)\b(?:INFO|WARN|WARNING|ERROR|DEBUG|CRITICAL|FATAL)\b[:|\]-]
    | ^\((?:raylet|gcs_server|autoscaler|\w{1,60}\ pid=\d) | ^[IWEF]\d{4}\ \d\d: | \bUCX\ {1,4}(?:ERROR|FATAL|WARN)\b
    | ^(?:srun|sbatch|salloc|slurm\w{1,12}):\ (?:error|warning|fatal): | ^libfabric:
    | ^\[[\w.-]{1,60}:\d{1,7}\]\ | ^\ {0,4}what\(\): | \.\ Signaling\ Trainer\ to\ stop\b
    | ^(?:[\[\d(].{0,120}|\S{0,40}\ ?)\b(?:INFO|WARN|WARNING|ERROR|DEBUG|CRITICAL|FATAL)\b\s
    """
)
_QUOTED = re.compile(r"\"[^\"\n]{1,400}\"|`[^`\n]{1,400}`|\u201c[^\u201d\n]{1,400}\u201d")
_QUOTED_ERROR = re.compile(
    r"(?P<mark>[\"`\u201c])(?P<error>(?:\w{1,40}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception): [^\"`\u201c\u201d\n]{8,1000})"
    r"(?P<end>[\"`\u201d])"
)
"""An exception with its message that the writer puts into quotes: it was printed."""
_FRAME = re.compile(r"\s{1,12}File \"")
_RAISED = re.compile(r".{0,60}?\b[A-Z]\w{0,60}(?:Error|Exception)\b\W{0,3}(?::|$)")
_MARKUP = re.compile(
    r"(?m)^#{1,4} [A-Z]|(?:^|[\s(])\*\*\w[^*\n]{0,80}\*\*(?:\W|$)|(?:\b[a-z]{2,20} ){2}`[^`\n]{1,200}`"
)
"""Post in Markdown, without any fence."""
_HEADING = re.compile(r"\s{0,3}#{1,6} +(?P<words>[A-Za-z].{2,160})$")
_TELLS = re.compile(
    r"(?i)\b(?:hangs|is (?:\w{2,10} )?stuck|gets stuck|freezes|stops|crashes|fails|works (?:fine|well)|happens)\b"
)
"""Report of a run, in the present tense; below an empty line, if a person or markup is seen as well."""
_ACCOUNT = re.compile(r"(?s)[A-Z](?=.{40})(?:(?!, |[.;!?]\s).){1,400}(?:, |[.;!?]\s)(?=\w).{20,4000}[.!?]")
"""Sentences of several clauses and nothing else: no program prints such."""
_FAILURE = re.compile(r"(?i)\b(?:error|exception|failed|failure|fatal|abort(?:ed)?)\b")
_SENTENCE = re.compile(r"(?:\b[A-Za-z][a-z']{0,20}(?:[ ,;.]{1,2}|$)){3}")
_LINK = re.compile(r"\s{0,4}(?:[-*] )?https?://\S{1,500}\s{0,4}$")
_FULL_STOP = re.compile(r"(?<=[.!?)]) {1,2}(?=[A-Z\d])")
_TITLE, _TITLE_PLAIN = 160, 0.92
"""Characters of a title, and its minimum share of letters, digits and blanks."""
_SMALL = re.compile(
    r"(?i)\b(?:with|on|in|of|the|a|an|is|are|than|for|after|when|and|does|not|from|how|why|no|my|at|over"
    r"|between|since|but|by)\b"
)
_STOPS = 16
"""Maximum number of full stops tried per line: each requires all tests for program output."""


_DIGITS = str.maketrans("", "", "0123456789")
_SIGNED = re.compile(r"[=:\[\]|%]")
_AGAIN, _VALUES, _BETWEEN = 8, 4, 6
"""Rows of one shape, and their different numbers, that show a program that prints in a loop; paragraphs between them
that it prints too, such as the questions and answers of a language model."""


def _looping(rows: list[str]) -> list[int]:
    """Return the rows whose shape comes again and again with other numbers."""
    found: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        if (shape := row.strip().translate(_DIGITS)) != row.strip() and _SIGNED.search(shape) and len(shape) <= _TITLE:
            found.setdefault(shape, []).append(at)
    return sorted(
        at
        for places in found.values()
        if len(places) >= _AGAIN and len({rows[at] for at in places[: 4 * _AGAIN]}) >= _VALUES
        for at in places
    )


def split_prose(text: str) -> tuple[str, str]:
    """Split a text into (what a person wrote, what a program printed); the second has blank lines for the first.

    Without fences (```), a paragraph is a person's only if it reads like one: I, my, a greeting, a question, or
    sentences about a run; any sentence that names no failure, if no line looks like a program's.
    """
    opening = text.lstrip()[:200].split("\n")[0]
    listed = "```" not in text and text.count("\n") > _LISTING and shown_code.is_statement(opening)
    if len(text) > _LONGEST or listed:
        return "", text
    if not (_PERSON.search(text) or "```" in text or _MARKUP.search(text)):
        account, rest = only_words(text)
        whole = not rest.strip() and _ACCOUNT.fullmatch(account.rstrip()) is not None
        return (account, rest) if whole and not _quotes_at_once(account) else ("", text)
    rows, ticked = _without_ticks(text.split("\n"))
    fenced = "```" in text
    kinds = _kinds(rows, ticked)
    bare = [row if kind in ("open", "output") else "" for row, kind in zip(rows, kinds, strict=True)]
    loop = _looping(bare)
    for at in loop:
        kinds[at] = "machine"
    ends = set[int]()
    for piece in shown_code.pieces(bare):
        kinds[piece.start : piece.stop] = ["machine"] * len(piece)
        ends.add(piece.stop)
    said, left = list[tuple[int, int]](), list(rows)
    prints = "output" in kinds or bool(loop)
    headed = _title_of(rows, kinds)
    titled = next(
        (kind == "open" and bool(_HEADING.match(row)) for row, kind in zip(rows, kinds, strict=True) if row.strip()),
        False,
    )  # a post that begins with its title
    for start, last in _runs(kinds):
        end = start + _before_output(rows[start:last])
        paragraph = rows[start:end]
        begins = start == 0 or not rows[start - 1].strip() or start in ends
        plain = not (prints or any(map(_FAILURE.search, paragraph)))
        told = begins and any((plain or _TELLS.search(row)) and _is_sentence(row) for row in paragraph)
        if (
            told
            or headed in range(start, end)
            or (titled and all(map(_HEADING.match, filter(str.strip, paragraph))))
            or any(map(_PERSON.search, paragraph))
            or (fenced and any(map(_SENTENCE.search, paragraph)))
        ):
            said.append((start, end))
    body = range(0)
    if loop:
        body = range(loop[0], loop[-1] + max((b - a for a, b in pairwise(loop)), default=0))
    looped = sum(start in body for start, _ in said) >= _BETWEEN
    words = []
    for start, end in said:
        doubts = (start in body) + looped  # a person writes above, below or a few times within what is printed
        if not doubts or (doubts == 1 and any(map(_PERSON.search, rows[start:end]))):
            words += [*rows[start:end], ""]
            left[start:end] = [""] * (end - start)
    for i, (row, kind) in enumerate(zip(rows, kinds, strict=True)):
        if kind == "output" and not (looped and i in body):
            own, left[i] = _split_row(row)
            words += own
    _add_quoted_error(rows, left)
    return "\n".join(words).strip(), "\n".join(left) if words else text


def _kinds(rows: list[str], ticked: list[bool]) -> list[str]:
    """Return what each row is: a fence, code, as programs print, or open; code on one line loses its fences."""
    kinds, inside = list[str](), False
    for at, (row, is_code) in enumerate(zip(rows, ticked, strict=True)):
        if _FENCE.match(row):
            inside = not inside
            kinds.append("fence")
        elif not inside and (line := _INLINE.match(row)):
            rows[at] = line["code"].strip()
            kinds.append("machine")
        elif is_code:
            kinds.append("machine")
        else:
            code = inside or not row.strip()
            kinds.append("machine" if code else "output" if _is_machine(row) else "open")
    return kinds


def _add_quoted_error(rows: list[str], left: list[str]) -> None:
    """Add the exception that a writer quotes to an output that has none: below the traceback if one is cut off."""
    if any(map(_RAISED.match, left)):
        return
    at, error = next(((n, m["error"]) for n, row in enumerate(rows) if (m := _QUOTED_ERROR.search(row))), (0, ""))
    frames = [n for n, row in enumerate(left) if _FRAME.match(row)]
    below = next((n for n in range(frames[-1] + 1, len(left)) if not left[n].startswith(" ")), -1) if frames else at
    if error and below >= 0:
        left[below] = error


def _title_of(rows: list[str], kinds: list[str]) -> int:
    """Return the row of a title: one row of words above everything, if a person writes below it; else -1."""
    at = next((n for n, row in enumerate(rows) if row.strip()), -1)
    if at < 0 or kinds[at] != "open" or any(row.strip() for row in rows[at + 1 : at + 2]):
        return -1
    row = rows[at]
    below = any(
        kind == "open" and _PERSON.search(other) for other, kind in zip(rows[at + 1 :], kinds[at + 1 :], strict=True)
    )
    return at if below and _is_words(row) else -1


def _is_words(row: str) -> bool:
    """True if a row reads like words that a person strings together: a small word, and hardly a sign."""
    plain = sum(c.isalnum() or c in " ,-'()" for c in row)
    return len(row) <= _TITLE and bool(_SMALL.search(row)) and plain >= _TITLE_PLAIN * len(row)


def _quotes_at_once(words: str) -> bool:
    """True if a sentence begins with a message that programs print: then they are a program's."""
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.text.matchers import lexicon

    hits = (hit for hit in lexicon(load()).hits(words) if not hit.is_of_value)
    return any(not words[: hit.start].rstrip(" \n\"'`") or words[: hit.start].rstrip()[-1:] in ".!?:" for hit in hits)


def only_words(text: str) -> tuple[str, str]:
    """Split a text of few sentences likewise: they are a person's if no known program prints them."""
    rows = text.split("\n")
    own = [row for row in rows if row.strip() and not (_is_machine(row) or _LINK.match(row))]
    if not own or len(list(filter(str.strip, rows))) > _FEW_LINES or not all(map(_is_sentence, own)):
        return "", text
    return "\n".join(own), "\n".join("" if row in own else row for row in rows)


def prints_nothing(text: str) -> bool:
    """True if what is left of a person's text is code, links or a few rows that no program prints."""
    rows = [r for r in text.split("\n") if r.strip(" `\t") and not (shown_code.is_statement(r) or _LINK.match(r))]
    return len(rows) <= _FEW_LINES and not any(_is_machine(row) or PROGRESS.search(row) for row in rows)


def _split_row(row: str) -> tuple[list[str], str]:
    """Split a line with both into (sentences of a person before or after program output, the rest of the line)."""
    cuts = [found.start() for found in islice(_FULL_STOP.finditer(row[:2_000]), _STOPS)]
    begin = next((c for c in reversed(cuts) if _is_sentence(row[:c]) and not _is_machine(row[:c])), 0)
    begin = begin if _PERSON.search(row[:begin]) or _TELLS.search(row[:begin]) else 0
    end = next((c for c in cuts if c > begin and _MINE.search(row[c:].split(". ", 1)[0])), len(row))
    return [part.strip() for part in (row[:begin], row[end:]) if part.strip()], row[begin:end]


def _before_output(paragraph: list[str]) -> int:
    """Count the rows up to the one that ends in a colon and is followed mostly by rows that are not sentences."""
    best, sentences = len(paragraph), 0
    for below, row in enumerate(reversed(paragraph)):
        if below and row.rstrip().endswith(":") and 2 * sentences < below:
            best = len(paragraph) - below
        if _PERSON.search(row):
            break
        sentences += _is_sentence(row)
    return best


def _without_ticks(rows: list[str]) -> tuple[list[str], list[bool]]:
    """Return the rows, and which are between two single backticks (`), taken as a fence; those lose the ticks."""
    result, ticked, begun = list(rows), [False] * len(rows), -1
    for i, row in enumerate(rows):
        if "```" in row or row.count("`") % 2 == 0:
            continue
        if begun < 0:
            begun = i if row.lstrip().startswith("`") else -1
            continue
        for j in range(begun, i + 1):
            result[j], ticked[j] = rows[j].strip().strip("`") if j in (begun, i) else rows[j], True
        begun = -1
    return result, ticked


def _is_sentence(row: str) -> bool:
    plain = sum(c.isalpha() or c == " " for c in row)
    return bool(_SENTENCE.search(row)) and plain >= _LETTERS * len(row)


def _is_machine(row: str) -> bool:
    start = row[:2_000]
    bare = _QUOTED.sub('""', start)  # a sentence may quote a message
    said = bare if _SENTENCE.search(bare) else start
    return bool(_MACHINE.search(said)) or without_prefixes(row[:500]).body != row[:500]


def _runs(kinds: list[str]) -> Iterator[tuple[int, int]]:
    at = 0
    for kind, run in groupby(kinds):
        end = at + len(list(run))
        if kind == "open":
            yield at, end
        at = end
