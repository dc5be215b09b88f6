"""Renders a job as one HTML page: what happened, a timeline of all ranks, the machine. It is self-contained."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape
from posixpath import commonprefix

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.job_logs.job_view import Job, RankSpan
from dtdebug.recorded.job_logs.timestamps import format_clock, stamp

_WIDTH, _BAR, _LEAST = 640, 9, 2
"""Width of the timeline, height of a rank's bar, and minimum length of a bar, in pixels."""
_ORDER = {"first": 0, "stopped": 1, "then": 2}
_COLOURS = {"first": "#d4380d", "then": "#d48806", "stopped": "#722ed1", "": "#5b8ff9"}
_LEGEND = "Red failed first, amber as a consequence, violet fell silent."
_WRAPPED = "white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"
"""Without it JupyterLab breaks output lines within words."""
_CARD_RANKS, _CARD_WIDTH = 1024, 640
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --ok: #5b8ff9; --first: #d4380d; --then: #d48806; --stopped: #722ed1 }
h1 { font-size: 1.3rem }
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem }
pre { white-space: pre-wrap; border: 1px solid var(--line); border-radius: 6px; padding: 1rem; overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: 1px 8px; border-bottom: 1px solid var(--line); white-space: nowrap }
td.file { white-space: normal; overflow-wrap: anywhere; font-size: 12px }
input { font: inherit; padding: 4px 8px; width: 24rem; max-width: 100% }
rect { fill: var(--ok) } .first rect { fill: var(--first) } .then rect { fill: var(--then) }
.stopped rect { fill: var(--stopped) } .first td, .stopped td { font-weight: 600 }
"""
_SCRIPT = """
const box = document.getElementById("search"), rows = [...document.querySelectorAll("#ranks tbody tr")];
const count = document.getElementById("count");
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/ +/).filter(Boolean);
  let seen = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
    seen += !row.hidden;
  }
  count.textContent = `${seen} of ${rows.length}`;
});
"""


def html(job: Job, text: str) -> str:
    """Return the page; `text` is the job's text for a terminal."""
    return "\n".join(_lines(job, text))


def card(job: Job, text: str) -> str:
    """Return the notebook card: what happened, and one picture with a column per rank; without scripts."""
    head, _, rest = text.partition("\n")
    picture = "".join(_columns(job.spans[:_CARD_RANKS]))
    return (
        f'<div class="dtdebug-job"><strong>{escape(head)}</strong>{picture}'
        f'<details open><summary>What the logs say</summary><pre style="{_WRAPPED}">{_hanging(rest)}</pre>'
        "</details></div>"
    )


def _hanging(text: str) -> str:
    """Return lines with a hanging indent; labelled rows indent up to the column of their words."""
    rows = []
    for line in text.split("\n"):
        begin = len(line) - len(line.lstrip())
        by = begin + 4 if ":" in line[:12] or begin != 2 else 12
        rows.append(f'<div style="padding-left:{by}ch;text-indent:-{by}ch">{escape(line)}</div>')
    return "".join(rows)


def _columns(spans: Sequence[RankSpan]) -> Iterator[str]:
    if not spans:
        return
    width = _CARD_WIDTH / len(spans)
    first = ", ".join(str(s.rank) for s in spans if s.role == "first")
    said = f"{len(spans)} ranks" + (f"; failed first: {first}" if first else "")
    yield (
        f'<svg viewBox="0 0 {_CARD_WIDTH} 24" height="24" preserveAspectRatio="none" role="img" aria-label="{said}" '
        f'style="display:block;margin:6px 0 0;width:{_CARD_WIDTH}px;max-width:100%">'
    )
    for n, s in enumerate(spans):
        title = f"rank {s.rank}{f' on {s.host}' if s.host else ''}: {s.role or 'nothing that tells of a failure'}"
        yield (
            f'<rect x="{n * width:.2f}" width="{max(width - 0.5, 0.6):.2f}" height="24" fill="{_COLOURS[s.role]}">'
            f"<title>{escape(title)}</title></rect>"
        )
    yield f'</svg><small style="display:block;margin-bottom:6px">A column for each rank. {_LEGEND}</small>'


def _lines(job: Job, text: str) -> Iterator[str]:
    allowed = b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>dtdebug: {job.ranks:,} ranks</title>\n<style>{_STYLE}</style>\n</head>\n<body>"
    head, _, rest = text.partition("\n")
    yield f"<h1>{escape(head)}</h1>"
    yield f"<pre>{_hanging(rest)}</pre>"
    if job.spans:
        yield from _ranks(job.spans)
    if job.hardware:
        yield from _table(
            "What the machine reports",
            ("time", "host", "code", "means", "device", "rank", "do", "file"),
            (
                (
                    stamp(e.time), e.host, e.code, e.means, e.pci, "" if e.rank is None else str(e.rank), e.action,
                    f"{e.file}:{e.line}",
                )
                for e in job.hardware
            ),
        )  # fmt: skip
    if job.new:
        yield from _table(
            "What the healthy run did not print",
            ("logs", "line", "file"),
            ((str(n.files), n.text, f"{n.file}:{n.line}") for n in job.new),
        )
    yield f"<script>{_SCRIPT}</script>\n</body>\n</html>"


def _ranks(spans: Sequence[RankSpan]) -> Iterator[str]:
    times = [t for s in spans for t in (s.began, s.last) if t is not None]
    begin, end = (min(times), max(times)) if times else (0.0, 0.0)
    yield f"<h2>Ranks, {stamp(begin)} to {stamp(end)}</h2>" if times else "<h2>Ranks</h2>"
    yield f"<p>{_LEGEND} The mark is the first line that tells.</p>"
    folder = _folder([s.file for s in spans])
    if folder:
        yield f"<p>Files below <code>{escape(folder)}</code></p>"
    yield (
        '<p><input id="search" type="search" placeholder="rank, host, word" aria-label="Search ranks"> '
        f'<span id="count" role="status">{len(spans)} of {len(spans)}</span></p>'
    )
    yield (
        '<table id="ranks"><thead><tr><th>rank</th><th>host</th><th>what</th><th>step</th><th>last line</th>'
        "<th>when it printed</th><th>file</th></tr></thead><tbody>"
    )
    for s in sorted(spans, key=lambda s: (_ORDER.get(s.role, len(_ORDER)), s.rank)):
        yield (
            f'<tr class="{escape(s.role)}"><td>{s.rank}</td><td>{escape(s.host)}</td><td>{escape(s.role)}</td>'
            f"<td>{'' if s.step is None else s.step}</td><td>{format_clock(s.last)}</td>"
            f'<td>{_bar(s, begin, end)}</td><td class="file">{escape(clean(s.file[len(folder) :]))}:{s.line}</td></tr>'
        )
    yield "</tbody></table>"


def _folder(files: Sequence[str]) -> str:
    """Return the common folder of several files with its trailing slash; empty if there is none."""
    common = commonprefix(files) if len(set(files)) > 1 else ""
    return common[: common.rfind("/") + 1]


def _bar(s: RankSpan, begin: float, end: float) -> str:
    if s.began is None or s.last is None or end <= begin:
        return ""
    scale = _WIDTH / (end - begin)
    x, width = (s.began - begin) * scale, max((s.last - s.began) * scale, _LEAST)
    mark = ""
    if s.told is not None and begin <= s.told <= end:
        mark = f'<path d="M{(s.told - begin) * scale:.1f} 0v{_BAR}" stroke="currentColor" stroke-width="2"/>'
    said = f"rank {s.rank}: {format_clock(s.began)} to {format_clock(s.last)}"
    return (
        f'<svg width="{_WIDTH}" height="{_BAR}" role="img" aria-label="{said}">'
        f'<rect x="{x:.1f}" width="{width:.1f}" height="{_BAR}"/>{mark}</svg>'
    )


def _table(title: str, names: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"<h2>{escape(title)}</h2>"
    yield "<table><thead><tr>" + "".join(f"<th>{escape(name)}</th>" for name in names) + "</tr></thead><tbody>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
    yield "</tbody></table>"
