"""Finds ranks whose logs end in a wait, and the line in which one of them parted from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.job_logs.line_judge import shape
from dtdebug.recorded.job_logs.part import Standing, Stream, TellingLine
from dtdebug.recorded.log_files.line_shapes import KeptLine
from dtdebug_taxonomy.logs import completion, prefixes, standstill
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import CallSite, Verdict, say, spell
from dtdebug_taxonomy.text.pattern_matcher import plain

_LAST = 4
"""Maximum number of lines below the last other one that say that a rank stands."""
_RARE, _ODD, _WORDS = 2, 8, 200
"""Maximum number of lines of a shape that deviate; maximum number kept; characters of each."""
_CONFIDENCE = 0.6
_SHOWN = 4


def standing(lined: Sequence[KeptLine], at: Callable[[bytes], float | None]) -> Standing | None:
    """Return the wait in which the lines of a printer end; None if they end in something else."""
    rows = [row for row in lined if row.raw.strip()]
    says = ""
    below = 0
    while rows and below < _LAST and standstill.states_standstill(body := _body(rows[-1].raw)):
        says, below = says or body, below + 1
        rows.pop()
    if not rows:
        return None
    last = _body(rows[-1].raw)
    if not (says or standstill.enters_wait(last)) or any(completion.is_completion(_body(r.raw)) for r in rows[-_LAST:]):
        return None
    counts = Counter(shape(row.raw) for row in lined)
    odd = [row for row in rows if counts[shape(row.raw)] <= _RARE and standstill.deviates(_body(row.raw))]
    return Standing(
        says=clean(says)[:_WORDS],
        last=_telling_line(rows[-1], at),
        odd=tuple(_telling_line(row, at) for row in odd[-_ODD:]),
    )


def _telling_line(row: KeptLine, at: Callable[[bytes], float | None]) -> TellingLine:
    return TellingLine(row.number, clean(_body(row.raw)).replace("\n", " ")[:_WORDS], at(row.raw))


def _body(raw: bytes) -> str:
    return prefixes.without_prefixes(raw[:800].decode("utf-8", "replace").replace("\n", " ")).body.strip()


def verdict(by_rank: Mapping[int, Stream]) -> Verdict | None:
    """Return the verdict on ranks that stand; None if none of them says so."""
    found = {rank: s.standing for rank, s in sorted(by_rank.items()) if s.standing is not None}
    if not found:
        return None
    said = next((s.says for s in found.values() if s.says), "")
    apart = _odd_lines(by_rank, found)
    places = _places(by_rank, found)
    culprits = tuple(sorted(apart))
    claims = [
        *(_claim_of(rank, by_rank[rank], line) for rank, line in sorted(apart.items())),
        *(_claim_of(rank, by_rank[rank], found[rank].last) for rank in found if rank not in apart)
    ][:16]  # fmt: skip
    ends = "; ".join(f'{say(ranks, "end")} in "{_short(words)}"' for words, ranks in places[:_SHOWN])
    if apart:
        line = min(apart.items(), key=lambda row: (row[1].time or 0.0, row[0]))[1]
        head = f'{spell(culprits, 8).capitalize()} parted from the others: "{_short(line.text, 120)}"'
        summary = f"{head}; then the job stands: {ends}."
    else:
        head = f'The job stands ("{_short(said)}")' if said else "The logs end in a wait"
        summary = f"{head}: {ends}."
    sites = [CallSite(rank, by_rank[rank].file, line.line, "") for rank, line in sorted(apart.items())]
    first = [next((r for r in ranks if r in found and r not in apart), None) for _, ranks in places]
    sites += [CallSite(r, by_rank[r].file, found[r].last.line, "") for r in first if r is not None]
    return Verdict(
        kind="skipped" if apart else "not_understood",
        culprits=culprits,
        waiting=tuple(rank for rank in found if rank not in apart),
        sites=tuple(sites[:16]),
        confidence=_CONFIDENCE if apart else 0.0,
        summary=summary,
        claims=tuple(claims),
        evidence=texts(claims),
    )


def _odd_lines(by_rank: Mapping[int, Stream], found: Mapping[int, Standing]) -> dict[int, TellingLine]:
    """Return rank -> the last line in which it did otherwise than all others, if only a minority did."""
    kinds: dict[bytes, dict[int, TellingLine]] = {}
    for rank, s in found.items():
        for line in s.odd:
            kinds.setdefault(shape(line.text.encode()), {})[rank] = line
    alone = [rows for rows in kinds.values() if 2 * len(rows) <= len(by_rank) and len(rows) < len(by_rank)]
    result: dict[int, TellingLine] = {}
    for rows in alone:
        for rank, line in rows.items():
            if rank not in result or result[rank].line < line.line:
                result[rank] = line
    return result if 2 * len(result) <= len(by_rank) else {}


def _places(by_rank: Mapping[int, Stream], found: Mapping[int, Standing]) -> list[tuple[str, list[int]]]:
    """Return (last line before the wait, ranks), of most ranks first; of other ranks the last step."""
    rows: dict[str, list[int]] = {}
    for rank, s in sorted(by_rank.items()):
        if rank in found:
            rows.setdefault(found[rank].last.text, []).append(rank)
        elif s.progress is not None:
            rows.setdefault(_body(s.progress.text.encode()), []).append(rank)
    return sorted(rows.items(), key=lambda row: (-len(row[1]), row[1]))


def _claim_of(rank: int, s: Stream, line: TellingLine) -> Claim:
    record = Record(source="output", line=line.line, path=s.file, rank=rank, words=line.text)
    return Claim(what="printed", ranks=(rank,), words=line.text, record=record)


def _short(text: str, most: int = 60) -> str:
    return plain(text, most)
