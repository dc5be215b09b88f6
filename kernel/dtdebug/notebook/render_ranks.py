"""Renders an observation of the ranks as text and as static HTML."""

from __future__ import annotations

import html as markup
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.notebook.cells import frame_words
from dtdebug.notebook.ranks_seen import RanksSeen
from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.model.ranks import Frame, Operation, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Gpu
from dtdebug_taxonomy.stacks.frames import is_library

_ROWS = 64
"""Maximum number of ranks with a row."""
_WAITS = 0.05
"""Share of a CPU below which a thread counts as waiting."""
_STYLE = "border-left:4px solid #c77700;padding:4px 12px;margin:4px 0;line-height:1.5;overflow-wrap:anywhere"
_CELL = "text-align:left;padding:1px 10px 1px 0;vertical-align:top"
_WHOLE = f"{_CELL};white-space:nowrap"
_WRAPPED = ("groups (begun/completed)", "in")
"""Columns with long values, which may wrap; the other columns and all heads would break within words."""


def bundle(seen: RanksSeen) -> dict[str, Any]:
    """Return the MIME bundle to publish in a notebook."""
    return {"text/plain": plain_text(seen), "text/html": html(seen)}


def below(card: dict[str, Any], seen: RanksSeen) -> dict[str, Any]:
    """Return the MIME bundle of a card with the places of the ranks below its text and its static HTML."""
    rows = "\n".join((*_align_columns(seen.ranks), *_remarks(seen)))
    ranks = f'<div style="{_STYLE}">{"".join(_html_of_ranks(seen))}</div>'
    return {**card, "text/plain": f"{card['text/plain']}\n{_short(rows)}", "text/html": f"{card['text/html']}{ranks}"}


def plain_text(seen: RanksSeen) -> str:
    """Format the answer as plain text: the verdict first, then the place of each rank."""
    head, *lines = _lines(seen)
    rows = (f"dtdebug: {head}", *(f"  {line}" for line in lines), *_align_columns(seen.ranks), *_remarks(seen))
    return _short("\n".join(rows))


def _align_columns(ranks: Sequence[RankState]) -> list[str]:
    """Return the table of the ranks as lines of text."""
    rows = _table(ranks)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return ["  ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def html(seen: RanksSeen) -> str:
    """Format the answer as static HTML: no script, nothing from outside, every text escaped."""
    head, *lines = _lines(seen)
    parts = [f'<div class="dtdebug" style="{_STYLE}"><b>dtdebug</b>: <b>{_safe(head)}</b>']
    parts += [f"<div>{_safe(line)}</div>" for line in lines]
    return "".join((*parts, *_html_of_ranks(seen), "</div>"))


def _html_of_ranks(seen: RanksSeen) -> Iterator[str]:
    """Yield the table of the ranks and the remarks as HTML."""
    if rows := _table(seen.ranks):
        styles = [_CELL if name in _WRAPPED else _WHOLE for name in rows[0]]
        body = (_row("td", row, styles) for row in rows[1:])
        yield from ("<table>", _row("th", rows[0], [_WHOLE] * len(styles)), *body, "</table>")
    yield from (f"<div><small>{_safe(line)}</small></div>" for line in _remarks(seen))


def _row(tag: str, values: Iterable[str], styles: Iterable[str]) -> str:
    cells = (f'<{tag} style="{style}">{_safe(value)}</{tag}>' for value, style in zip(values, styles, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _safe(value: str) -> str:
    return markup.escape(_short(value))


def _short(value: str) -> str:
    """Return a text that is safe to show, with file names relative to the working directory."""
    with suppress(OSError):  # the cell may have deleted it
        folder = Path.cwd()
        value = value if folder == folder.parent else value.replace(f"{folder}{os.sep}", "")
    return clean(value)


def _lines(seen: RanksSeen) -> list[str]:
    """Return the headline and its details."""
    cell, verdict = _cell(seen), seen.verdict
    if verdict is None or verdict.kind == "none":
        if seen.ranks:
            living = sum(s.alive is not False for s in seen.ranks)
            head = f"{len(seen.ranks)} ranks, {living} alive"
            return [f"{head}. {verdict.summary}" if verdict and verdict.summary else head, *cell]
        return cell or ["no ranks, and no cell is running"]
    return [verdict.summary or verdict.kind, *_details(verdict), *cell]


def _details(verdict: Verdict) -> Iterable[str]:
    from dtdebug_taxonomy.diagnosis.headline import claims_seen  # with them the knowledge is loaded
    from dtdebug_taxonomy.presentation.text import seen_line

    for site in verdict.sites[:8]:
        what = "waits in" if site.rank in verdict.waiting and site.rank not in verdict.culprits else "is in"
        yield f"rank {site.rank} {what} {frame_words(Frame(site.file, site.line, site.function))}"
    yield from (f"seen: {seen_line(row)}" for row in claims_seen(verdict)[:5])
    for other in verdict.alternatives[:2]:
        yield f"or: {other.kind} by {_numbers(other.culprits)}, because {other.because}"
    if 0 < verdict.confidence < 1:
        yield f"how sure: {verdict.confidence:.0%}"


def _cell(seen: RanksSeen) -> list[str]:
    """Return lines about where the running cell of this kernel is."""
    stack = seen.here.stack
    if not stack:
        return []
    busy = seen.here.busy
    doing = "is" if busy is None else "waits" if busy < _WAITS else f"computes ({busy:.0%} of a CPU)"
    own = [f for f in stack if not is_library(f.file)]
    last = own[-1] if own else stack[0]
    lines = [f"{_place(stack[0])} {doing}: {stack[0].code}".rstrip(": ")]
    if last is not stack[0]:
        lines.append(f"it is at {frame_words(last)}")
    if stack[-1] is not last:
        lines.append(f"within {stack[-1].function} ({Path(stack[-1].file).name}:{stack[-1].line})")
    return lines


def _place(frame: Frame) -> str:
    return f"{frame.file}, line {frame.line}"


def _table(ranks: Sequence[RankState]) -> list[tuple[str, ...]]:
    """Return the rows with a header first; columns without any value are left out."""
    if not ranks:
        return []
    rows = [tuple(value(s) for _, value in _COLUMNS) for s in ranks[:_ROWS]]
    used = [i for i in range(len(_COLUMNS)) if any(row[i] for row in rows)]
    return [tuple(_COLUMNS[i][0] for i in used), *(tuple(row[i] for i in used) for row in rows)]


def _condition(state: RankState) -> str:
    if state.alive is False:
        return f"dead ({state.signal or state.exit_code})" if state.signal or state.exit_code is not None else "dead"
    return "holds the GIL" if state.gil_held else "alive"


def _groups(state: RankState) -> str:
    def count(value: int | None) -> str:
        return "?" if value is None else str(value)

    shown = [f"{g.desc or g.name} {count(g.enqueued)}/{count(g.completed)}" for g in state.groups[:6]]
    return ", ".join(shown) + (", ..." if len(state.groups) > len(shown) else "")


def _operation(pending: Operation | None) -> str:
    if pending is None:
        return ""
    number = "" if pending.seq is None else f" #{pending.seq}"
    peer = "" if pending.peer is None else f" with rank {pending.peer}"
    return f"{pending.op}{number}{f' of {pending.group}' if pending.group else ''}{peer}"


def _at(state: RankState) -> str:
    own = [f for f in state.stack if not is_library(f.file)]
    if not own:
        return ""
    frame = (
        own[-1] if own[-1].file.startswith("cell ") else msgspec.structs.replace(own[-1], file=Path(own[-1].file).name)
    )
    return frame_words(frame)[:100]


def _memory(state: RankState) -> str:
    return f"{_size(state.device_memory[0])} ({_size(state.device_memory[1])})" if state.device_memory else ""


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


_COLUMNS: tuple[tuple[str, Callable[[RankState], str]], ...] = (
    ("rank", lambda s: "?" if s.rank is None else str(s.rank)),
    ("pid", lambda s: str(s.pid or "")),
    ("host", lambda s: s.host),
    ("state", _condition),
    ("groups (begun/completed)", _groups),
    ("in", lambda s: ", ".join(filter(None, (_operation(s.pending), _at(s))))),
    ("step", lambda s: "" if s.step is None else str(s.step)),
    ("device memory (reserved)", _memory),
)


def _remarks(seen: RanksSeen) -> list[str]:
    """Return lines on devices and their users, ranks that did not answer, and notes."""
    ranks = {s.pid: s.rank for s in seen.ranks}
    lines = [_device(gpu, ranks) for gpu in seen.gpus]
    if len(seen.ranks) > _ROWS:
        lines.append(f"{len(seen.ranks) - _ROWS} more ranks are not shown")
    for state in seen.ranks[:_ROWS]:
        if state.alive is not False and state.roads and "ok" not in state.roads.values():
            tried = "; ".join(f"{road}: {why}" for road, why in state.roads.items())
            lines.append(f"rank {'?' if state.rank is None else state.rank} did not answer ({tried})"[:300])
    return [*lines, *(f"note: {n}" for n in seen.notes), f"(looked for {seen.seconds:.1f} s)"]


def _device(gpu: Gpu, ranks: dict[int | None, int | None]) -> str:
    users = [
        f"{f'rank {ranks[pid]}' if pid in ranks else f'pid {pid}, none of these ranks'} {_size(used)}"
        for pid, used in gpu.processes[:8]
    ]
    busy = "" if gpu.utilization is None else f", {gpu.utilization} % busy"
    return (
        f"GPU {gpu.index} {gpu.name}: {_size(gpu.memory_used)} of {_size(gpu.memory_total)}{busy}; "
        f"{', '.join(users) or 'nobody on it'}"
    )


def _numbers(ranks: Iterable[int]) -> str:
    return ", ".join(f"rank {r}" for r in ranks)
