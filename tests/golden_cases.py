"""All inputs that are committed, each with its answer as data: what `tests/goldens` holds.

A golden is JSON with one row a line, so that a change of an answer is a short diff. It holds the headline, and for the
rest ids, words and numbers; probabilities only as their bands, so that a change of a weight alone moves nothing.
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dtdebug.privacy.sanitize import plain
from dtdebug.recorded.flight_recorder import analyse
from dtdebug.recorded.log_files import excerpt as log_excerpt
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis, diagnose
from dtdebug_taxonomy.explanations.model import Explanation
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.logs.split_failures import lead_first, split_failures
from dtdebug_taxonomy.logs.split_post import split_prose
from dtdebug_taxonomy.model.claims import Claim
from dtdebug_taxonomy.model.ranks import Verdict, ranges
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer
from dtdebug_taxonomy.presentation.answer_text import MOST, WIDTH, lay_out
from dtdebug_taxonomy.verdicts.from_log import verdict_of_log

TESTS = Path(__file__).parent
GOLDENS = TESTS / "goldens"


class Case(NamedTuple):
    """An input, read when it is asked for."""

    name: str
    """Its file in `goldens`, without suffix: `samples/hang/torch-uneven-batches`."""
    read: Callable[[], Snapshot]
    rated: Mapping[str, Any] = {}
    """What raters accept, where they have rated it: `accept` (symptoms) and `accept_fixes`."""

    @property
    def file(self) -> Path:
        """The file of its golden."""
        return GOLDENS / f"{self.name}.json"


def all_cases() -> list[Case]:
    """Every committed input, in the order of names."""
    found = [
        *_samples(),
        *_rated(),
        *_recorded("printed", "*.txt"),
        *_recorded("nccl", "*.log"),
        *_dumps(),
        *_snapshots("accounts", TESTS / "contracts" / "failures.jsonl"),
        *_snapshots("measured", TESTS / "measured.jsonl"),
    ]
    return sorted(found, key=lambda case: case.name)


def golden(snapshot: Snapshot, found: Diagnosis | None = None) -> str:
    """The answer as the text of its golden."""
    return _rows(data(snapshot, diagnose(load(), snapshot) if found is None else found))


def short_answer_faults(snapshot: Snapshot, found: Diagnosis) -> list[str]:
    """Return what is wrong with the form of the short answer: its length, its width, words that belong to the rest."""
    lines = lay_out(build_answer(found, snapshot), prefix="dtdebug: ")
    text = "\n".join(line.text for line in lines)
    words = text.split()
    grams = [" ".join(words[at : at + 6]) for at in range(len(words) - 5)]
    faults = {
        f"{len(lines)} lines": len(lines) > MOST,
        "a line of more than 80 columns": any(len(row.text) > WIDTH for row in lines if row.kind != "command"),
        "no headline": not lines[0].text.removeprefix("dtdebug: ").strip(),
        "words of the long form": LONG_FORM.search(text) is not None,
        "a fact twice": len(grams) - len(set(grams)) > len(grams) // 8,
    }
    return [*(fault for fault, there in faults.items() if there), *([text] if any(faults.values()) else [])]


LONG_FORM = re.compile(r"\b[A-F]\.\d\.|about \d+ min|against it|not your file|That goes with|\[measured\]")


def difference(before: str, now: str, name: str) -> str:
    """The lines that differ, with one line around them."""
    rows = difflib.unified_diff(before.splitlines(), now.splitlines(), f"{name} (golden)", "now", n=1, lineterm="")
    return "\n".join(rows)


def data(snapshot: Snapshot, d: Diagnosis) -> dict[str, Any]:
    """What of an answer is compared; parts that say nothing are left out."""
    first = d.symptoms[0]
    return _said(
        happened=d.happened,
        ordinary=d.ordinary,
        recognised=d.recognised,
        verdict=d.verdict,
        symptom=f"{first.code} {first.id} ({first.band})",
        causes=[_cause(a) for a in d.advice],
        guesses=[a.cause for a in d.guesses],
        question=d.question.key if d.question else "",
        next=_next(d),
        culprits=ranges(d.culprits),
        ranks=_verdict(snapshot.verdict),
        claims=[_claim(c) for c in snapshot.verdict.claims] if snapshot.verdict else [],
        later=[data(part, answer) for part, answer in zip(snapshot.later, d.later, strict=True)],
    )


def _cause(advice: Explanation) -> dict[str, Any]:
    sources = list(dict.fromkeys(r.source for r in advice.because))
    return _said(
        cause=advice.cause, band=advice.band, named=advice.named or None, rests_on=sources, diff=advice.diff_of
    )


def _next(d: Diagnosis) -> str:
    """What to do next: the id of a measure, the title of the cause that is mended, the question that is asked."""
    if d.next is None:
        return ""
    measure = next((m.id for m in load().measures if m.text == d.next.text), "")
    title = {"fix": d.next.why, "measure": measure, "ask": d.question.key if d.question else ""}[d.next.kind]
    return f"{d.next.kind}: {title}"


def _verdict(verdict: Verdict | None) -> dict[str, Any]:
    if verdict is None:
        return {}
    return _said(kind=verdict.kind, culprits=ranges(verdict.culprits), waiting=ranges(verdict.waiting))


def _claim(claim: Claim) -> dict[str, Any]:
    return _said(what=claim.what, ranks=ranges(claim.ranks), file=claim.file, line=claim.line)


def _said(**parts: Any) -> dict[str, Any]:
    return {key: part for key, part in parts.items() if part or part is False}


def _rows(value: dict[str, Any], indent: str = "") -> str:
    """JSON with sorted keys, each row of a list on a line of its own."""
    lines = []
    for key, part in sorted(value.items()):
        if key == "later":
            rows = [_rows(row, f"{indent}    ").rstrip("\n") for row in part]
        else:
            rows = [_row(row) for row in part] if isinstance(part, list) else []
        inner = f",\n{indent}    ".join(rows)
        lines.append(f"{indent}  {_row(key)}: " + (f"[\n{indent}    {inner}\n{indent}  ]" if rows else _row(part)))
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}\n"


def _row(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _samples() -> Iterator[Case]:
    """A program's output and what its user said are one case."""
    for folder in sorted(path for path in (TESTS / "samples").iterdir() if path.is_dir()):
        texts = [
            file for file in folder.iterdir() if file.suffix in (".txt", ".log") and b"\0" not in file.read_bytes()
        ]
        for name in sorted({file.name.removesuffix(file.suffix).removesuffix(".said") for file in texts}):
            log = next((file for file in (folder / f"{name}.txt", folder / f"{name}.log") if file.exists()), None)
            yield Case(f"samples/{folder.name}/{name}", partial(_read, log, folder / f"{name}.said.txt"))


def _recorded(folder: str, files: str) -> Iterator[Case]:
    for file in (TESTS / folder).glob(files):
        yield Case(f"{folder}/{file.stem}", partial(_read, file))


def _read(log: Path | None, words: Path | None = None) -> Snapshot:
    """As `dtdebug diagnose` reads them, but without the source on this machine."""
    excerpt = log_excerpt.read_path(log) if log is not None else log_excerpt.Excerpt("", (), 0)
    situation, output = words.read_text(encoding="utf-8") if words and words.exists() else "", plain(excerpt.text)
    if not situation:
        situation, output = split_prose(output)
    whole = Snapshot(situation=plain(situation), output=output, first_lines=excerpt.first_lines)
    parts = lead_first(split_failures(whole))
    first, *later = (msgspec.structs.replace(part, verdict=verdict_of_log(part)) for part in parts)
    return msgspec.structs.replace(first, later=tuple(later))


def _rated() -> Iterator[Case]:
    """As `batch.run_case` reads them; a description that nobody has rated is named after its thread."""
    for file in sorted((TESTS / "cases").glob("*.jsonl")):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for row in (row for row in rows if "situation" in row):
            name = row.get("id") or "-".join(row["url"].split("/")[-3::2]).lower()
            read = partial(Snapshot, situation=row["situation"], output=row.get("evidence") or "")
            yield Case(f"cases/{file.stem}/{name}", read, row if "accept" in row else {})


def _snapshots(folder: str, file: Path) -> Iterator[Case]:
    """Failures of which more is known than their text: accounts of ranks, verdicts, findings, runs with changes."""
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield Case(f"{folder}/{row['name']}", partial(msgspec.convert, row["snapshot"], Snapshot))


def _dumps() -> Iterator[Case]:
    for name in sorted({file.name.partition(".")[0] for file in (TESTS / "nccl").glob("*.rank_*.json")}):
        yield Case(f"nccl/{name}.dumps", partial(_read_dumps, name))


def _read_dumps(name: str) -> Snapshot:
    """The dumps of a job, with its output if that was recorded too."""
    log = TESTS / "nccl" / f"{name}.log"
    with tempfile.TemporaryDirectory() as folder:
        for file in (TESTS / "nccl").glob(f"{name}.rank_*.json"):
            shutil.copy(file, Path(folder) / file.stem.partition(".")[2])
        verdict = analyse(Path(folder)).verdict
    return Snapshot(output=plain(log.read_text(encoding="utf-8")) if log.exists() else "", verdict=verdict)
