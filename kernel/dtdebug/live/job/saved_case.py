"""Reads what was concluded when most was known: the case of a run's folder, of its archive, of a saved answer.

A case is computed again only where none was saved, or where the run has gone on since: the ranks that were asked then
are gone, and dumps may have been left out of an archive.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dtdebug.live.hosts import presence
from dtdebug.live.job.conclude import conclude, load_case, printed_output, success_case
from dtdebug.live.job.observe import last
from dtdebug.privacy.sanitize import clean
from dtdebug.storage import safe_open
from dtdebug.storage.last_failure import LastFailure
from dtdebug.storage.run_archive import UnpackError, unpack
from dtdebug.storage.run_folder import RunFolder
from dtdebug.storage.untrusted import drop_impossible
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.model.status import CLEAR
from dtdebug_taxonomy.presentation.case_json import Case

_LIMIT = 256 << 20
"""Maximum size in bytes of a saved answer."""

RUN_STEP = "dtdebug run -- "
"""Beginning of a step that a run has already taken."""


class SavedCaseError(ValueError):
    """A saved case can't be used; the text is the one line that the user sees."""


class Saved(NamedTuple):
    """A case with what is needed to show and to diagnose it."""

    case: Case
    snapshot: Snapshot
    folder: RunFolder | None = None
    """Folder of its records, if they stay there."""
    of_text: bool = False
    """True if it answers for a text or a description, in which ranks were only read of."""


def of_run(folder: RunFolder, *, kept: bool = True) -> Saved:
    """Return the case of a run that has ended; `kept` is False for a folder that will be deleted.

    Raises:
        SavedCaseError: it holds nothing of a rank, a host or a verdict.

    """
    run = folder.load_run()
    case = None
    if run is not None and run.finished is not None and run.status == 0:
        case = success_case(folder)
    elif (run is not None and run.finished is not None) or not _went_on(folder):
        case = load_case(folder)
    if case is None:
        hosts = presence.read_hosts(folder)
        seen = last(folder)
        if not (seen.states or hosts):
            raise SavedCaseError(f"{clean(str(folder.path))}: holds nothing of a rank")
        case = conclude(folder, seen, hosts=hosts, keep=False)
    case = without_step(without_step(case, "dtdebug attach"), RUN_STEP)
    case = msgspec.structs.replace(case, ranks=tuple(map(drop_impossible, case.ranks)))
    return Saved(case, snapshot_of(case, folder), folder if kept else None)


def _went_on(folder: RunFolder) -> bool:
    """True if a rank has written how it ended since the verdict was saved."""
    with suppress(OSError):
        saved = folder.verdict.stat().st_mtime
        return any(s.exception is not None and (s.time or 0.0) > saved for s in folder.records())
    return True


def of_archive(path: Path) -> Saved:
    """Return the case of an archive of `dtdebug report RUN`; raises SavedCaseError."""
    with tempfile.TemporaryDirectory(prefix="dtdebug-") as scratch:
        try:
            left_out = unpack(path, Path(scratch))
        except UnpackError as error:
            raise SavedCaseError(f"{clean(str(path))}: {error}") from None
        found = of_run(RunFolder(Path(scratch)), kept=False)
    name = clean(path.name)
    case = without_commands(found.case, name)
    notes = (*case.notes, *(f"{name}: left out: {line}" for line in left_out))
    return found._replace(case=msgspec.structs.replace(case, notes=notes))


def of_answer(path: Path) -> Saved:
    """Return the case of an answer that was saved as JSON by `--format json`; raises SavedCaseError."""
    name = clean(str(path))
    try:
        with safe_open.log(path) as file:
            data = file.read(_LIMIT + 1)
        form = msgspec.json.decode(data, type=dict[str, Any])
        if "snapshot" in form:
            last_failure = msgspec.convert(form, LastFailure)
            snapshot, diagnosis = last_failure.snapshot, last_failure.diagnosis
            case = without_commands(case_of(snapshot, diagnosis), name)
            return Saved(case, snapshot, of_text=not snapshot.ranks)
        case = without_commands(_case(form), name)
    except OSError as error:
        raise SavedCaseError(f"{name}: can't be read: {error.strerror}") from None
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        raise SavedCaseError(f"{name}: is not an answer of dtdebug in JSON, or one of another version") from None
    return Saved(case, snapshot_of(case, None), of_text=not case.ranks)


def _case(form: dict[str, Any]) -> Case:
    """Return the case of its machine-readable form; raises ValueError."""
    verdict = {**form["verdict"], "claims": form.get("claims", form["verdict"].get("claims", ()))}
    verdict.pop("where", None)
    for claim in verdict["claims"]:
        claim.pop("text", None)
    verdict["summary"] = clean(verdict["summary"]).strip()
    if not verdict["summary"] and verdict["kind"] not in ("none", "not_understood"):
        raise ValueError("concludes nothing")
    if verdict["kind"] == "none" and form.get("status", "healthy") not in CLEAR:  # what failed is no fault of a rank
        said = (form.get("diagnosis") or {}).get("happened") or "A failure was found, and not what it was."
        verdict |= {"kind": "not_understood", "summary": clean(said)}
    known = {key: form[key] for key in Case.__struct_fields__ if key in form and key not in ("verdict", "cases")}
    if not isinstance(known.get("ranks", ()), list | tuple):  # `triage` counts them there
        known = {key: known[key] for key in ("diagnosis",) if key in known}
    case = msgspec.convert({**known, "verdict": verdict}, Case, str_keys=True)
    return msgspec.structs.replace(
        case, ranks=tuple(map(drop_impossible, case.ranks)), cases=tuple(map(_case, form.get("cases", ())))
    )


def without_commands(case: Case, name: str) -> Case:
    """Return the case of a file from elsewhere without its next step: a user would run what the file names."""
    d = case.diagnosis
    if not (case.next or case.commands or (d is not None and d.next is not None)):
        return case
    told = f"{name}: its next step is not shown, since a file can name any command"
    if d is not None:
        question = msgspec.structs.replace(d.question, command="") if d.question is not None else None
        d = msgspec.structs.replace(d, next=None, question=question)
    return msgspec.structs.replace(case, next="", commands=(), diagnosis=d, notes=(*case.notes, told))


def without_step(case: Case, command: str) -> Case:
    """Return the case without a next step that has been taken, or that needs a job that has ended."""
    d = case.diagnosis
    if d is not None and d.next is not None and command in d.next.command:
        question = None if case.verdict.culprits else d.question  # it weighed less than that step
        case = msgspec.structs.replace(case, diagnosis=msgspec.structs.replace(d, next=None, question=question))
    return msgspec.structs.replace(case, next="") if command in case.next else case


def case_of(snapshot: Snapshot, diagnosis: Diagnosis) -> Case:
    """Return the case of a stored failure."""
    from dtdebug_taxonomy.presentation.case_json import of_text

    case = of_text(snapshot, diagnosis)
    return msgspec.structs.replace(
        case, ranks=snapshot.ranks, watch=snapshot.watched, late=snapshot.late, diagnosis=diagnosis
    )


def snapshot_of(case: Case, folder: RunFolder | None) -> Snapshot:
    """Return what a case was concluded from, as far as it is kept."""
    output = printed_output(folder) if folder is not None else ""
    run = folder.load_run() if folder is not None else None
    return Snapshot(
        output=output,
        source=str(folder.output) if folder is not None and output else "",
        ranks=case.ranks,
        versions=next((s.versions for s in case.ranks if s.versions), {}),
        environment=next((s.environment for s in case.ranks if s.environment), {}),
        command=run.command if run is not None else (),
        verdict=case.verdict,
        accounts=case.accounts,
        parting=case.parting,
        watched=case.watch,
        late=case.late,
        notes=case.notes,
    )
