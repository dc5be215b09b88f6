"""`%dtdebug check`: runs the checks over the cells of this session, or over files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dtdebug.check import formats
from dtdebug.check.examine_file import CheckFinding, Selection, examine_file, of_notebook
from dtdebug.check.files import settings_of
from dtdebug.check.texts import apply_edits
from dtdebug.privacy.sanitize import clean


def report(history: Sequence[str], paths: Sequence[str]) -> str:
    """Return the findings with their lines and fixes, since not every notebook shows our squiggles.

    `history` is IPython's `In`: the source of each input by its number.
    """
    if paths:
        examined = [examine_file(Path(path), Selection()) for path in paths]
        findings = [f for e in examined for f in e.findings]
        problems = [p for e in examined for p in (*e.problems, *e.unread)]
        lines = [f"{formats.where(f)}: {_format_finding(f)}" for f in findings]
        return "\n".join([*map(clean, problems), *lines, _summary(findings, len(paths), "file")]) + "\n"
    cells = _last_of_each(history)
    settings, problems_of_settings = settings_of(Path.cwd())
    findings = of_notebook([("code", text) for _, text in cells], "", settings)
    lines = list(map(clean, problems_of_settings))
    for f in findings:
        number, text = cells[f.cell - 1]
        lines += [f"In[{number}], line {f.line}: {_format_finding(f)}", *_format_fix(text, f)]
    return "\n".join([*lines, _summary(findings, len(cells), "cell")]) + "\n"


def _last_of_each(history: Sequence[str]) -> list[tuple[int, str]]:
    """Return inputs with their numbers; of one that was run several times unchanged, the last."""
    last = {text: number for number, text in enumerate(history) if isinstance(text, str) and text.strip()}
    mine = ((number, text) for text, number in last.items() if not text.lstrip().startswith("%dtdebug"))
    return sorted(mine)


def _format_finding(f: CheckFinding) -> str:
    return clean(f"{f.severity} {f.id} {f.message}")


def _format_fix(text: str, f: CheckFinding) -> list[str]:
    """Return the line as it is, and as its fix changes it."""
    import difflib

    lines = text.split("\n")
    shown = [f"    {clean(lines[f.line - 1])}"] if f.line <= len(lines) else []
    if f.fix is None:
        return shown
    changed = difflib.unified_diff(lines, apply_edits(lines, f.fix.edits), n=0, lineterm="")
    diff = [f"    {clean(line)}" for line in changed if not line.startswith(("---", "+++", "@@"))]
    return [f"  {clean(f.fix.title)}:", *diff]


def _summary(findings: Sequence[CheckFinding], count: int, what: str) -> str:
    plural = "" if count == 1 else "s"
    if not findings:
        return f"dtdebug: nothing found in {count} {what}{plural}"
    return f"dtdebug: {len(findings)} found in {count} {what}{plural}; `%dtdebug explain {findings[0].id}` tells more"
