"""Implements the `%dtdebug` magic: shows the last failure, its causes, and the next step."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dtdebug.notebook.live_kernel import LiveExtension
    from dtdebug.wizard.session import Session

_ALL, _SCREEN = "--all", 24
"""Option of `%dtdebug explain` that prints the whole page; lines of a page that are printed without it."""
USAGE = """%dtdebug                     the wizard, with everything that was measured filled in
%dtdebug why                 every finding and what it does to the leading symptoms
%dtdebug ask                 the next question
%dtdebug answer KEY VALUE    answers it (or any other: %dtdebug explain KEY lists the values)
%dtdebug say TEXT            tell in plain words what you see
%dtdebug state               all ranks: where each is, its groups, its memory, who else is on the devices
%dtdebug hang                which rank the others wait for, and where (in a subshell while a cell hangs)
%dtdebug end                 ends ranks of earlier cells that still run: they hold ports and memory
%dtdebug check [PATH ...]    what will fail in distributed runs: in the cells that ran, or in files
%dtdebug doctor [COMMAND]    preflight: can the hosts of this launch command connect? without one: this host
%dtdebug isolate [-- CMD]    which component is responsible: runs the job of a cell again with things changed
%dtdebug watch [-- CMD]      runs a job and reports broken training invariants and stragglers
%dtdebug run --parity [-- CMD]        is a step that of one process? also --nan: where the first NaN arises;
                             --resume-check: does it go on where it stopped
%dtdebug rehearse --memory --world N [-- CMD]  will it fit: peak memory of each rank, on any machine
%dtdebug triage PATH ...     the logs of a job: which rank failed first, who followed, who fell silent
%dtdebug explain NAME [--all] the first lines, or all, on a check, symptom code, fix pattern, indicator or observation
%dtdebug learn [NAME [DIR]]  guides to what developers ask most, and notebooks to learn with
%dtdebug report [FILE]       a Markdown report to paste into an issue
%dtdebug resume              the wizard where it was before the kernel was restarted
%dtdebug off | on            nothing, or the answer, appears under failed cells
%dtdebug debug               tracebacks of dtdebug's own failures"""


def register(extension: LiveExtension) -> None:
    """Add `%dtdebug` to a shell."""

    def dtdebug(line: str) -> None:
        run(extension, line)

    dtdebug.__doc__ = f"Why did my distributed run fail?\n\n{USAGE}"
    extension.shell.register_magic_function(dtdebug, "line", "dtdebug")


def run(extension: LiveExtension, line: str) -> None:
    """Run one call of the magic; an internal error becomes one line."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    verb, rest = (words[0], words[1:]) if words else ("", [])
    action = _VERBS.get(verb)
    if action is None:
        print(f"dtdebug: {_unknown(verb)}")
        return
    from dtdebug.storage.budget import one_command

    try:
        with one_command():
            action(extension, rest)
    except (KeyError, ValueError, OSError) as error:
        print(f"dtdebug: {error}")
    except Exception as error:
        extension.report_own(error)


def _unknown(verb: str) -> str:
    """Return the line about a verb that does not exist, with the one that was probably meant."""
    from difflib import get_close_matches

    close = get_close_matches(verb.lower(), _VERBS, n=1)
    meant = f"did you mean `%dtdebug {close[0]}`?" if close else "`%dtdebug help` lists the verbs."
    return f"no verb {verb!r}; {meant}"


def show_last(extension: LiveExtension) -> None:
    """Publish the answer for the last cell that failed, if nothing has answered for it yet."""
    from dtdebug.notebook.failed_cell import last_snapshot
    from dtdebug.presentation.diagnosis_card import bundle
    from dtdebug.privacy.boundary import diagnose
    from dtdebug_taxonomy.knowledge.loader import load

    snapshot = last_snapshot(extension.shell)
    if snapshot is not None:
        extension.snapshot = snapshot
        extension.publish(bundle(diagnose(load(), snapshot), snapshot))


def _session(extension: LiveExtension) -> Session:
    """Return the wizard's session of the last failure; an empty one if nothing has failed."""
    from dtdebug.notebook.failed_cell import last_snapshot
    from dtdebug.notebook.magic_ranks import add_measurements
    from dtdebug.wizard.session import Session
    from dtdebug_taxonomy.model.snapshot import Snapshot

    if extension.snapshot is None:
        from dtdebug.notebook.magic_ranks import after_death

        extension.snapshot = last_snapshot(extension.shell) or after_death(extension)
    open_one: Session | None = extension.wizard.session if extension.wizard is not None else extension.session
    return add_measurements(extension, open_one or Session(snapshot=extension.snapshot or Snapshot()))


def _show(extension: LiveExtension, session: Session) -> None:
    """Show the wizard as widgets in a notebook, or as questions in a terminal."""
    if hasattr(extension.shell, "kernel"):
        from dtdebug.wizard import widgets

        extension.wizard = widgets.show(session)
    else:
        from dtdebug.wizard import terminal

        extension.session = terminal.run(session)


def _wizard(extension: LiveExtension, rest: list[str]) -> None:
    _show(extension, _session(extension))


def _resume(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug.wizard import resume

    session = resume()
    if session is None:
        print("dtdebug: there is no unfinished wizard")
        return
    extension.snapshot = session.snapshot
    _show(extension, session)


def _why(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug.presentation.diagnosis_card import without_examples
    from dtdebug_taxonomy.presentation.text import reason_line, to_text

    d = without_examples(_session(extension).diagnosis())
    print(to_text(d, full=True))
    for s in (s for s in d.symptoms[: 0 if d.ordinary else 3] if s.why):
        print(f"{s.title} ({s.code}): {s.band} ({s.probability:.0%})")
        for r in s.why:
            print(f"  {r.weight:+.1f} {reason_line(r)}")


def _ask(extension: LiveExtension, rest: list[str]) -> None:

    question = _session(extension).diagnosis().question
    if question is None:
        print("dtdebug: No further question would help.")
        return
    print(question.ask)
    for value, means in question.values:
        print(f"  {value}: {means}")
    print(f"%dtdebug answer {question.key} VALUE\n{question.why}\nHow to find out: {question.how}")
    if question.command:
        print(f"  {question.command}")


def _answer(extension: LiveExtension, rest: list[str]) -> None:
    if len(rest) != 2:
        print("dtdebug: %dtdebug answer KEY VALUE")
        return
    _go_on(extension, _session(extension).answer(rest[0], rest[1]))


def _say(extension: LiveExtension, rest: list[str]) -> None:
    _go_on(extension, _session(extension).describe(" ".join(rest)))


def _go_on(extension: LiveExtension, session: Session) -> None:
    """Store a changed session, and show the new answer or that it is the same."""
    from dtdebug.presentation.cell_answer import answer_of
    from dtdebug.presentation.diagnosis_card import bundle
    from dtdebug.wizard import keep
    from dtdebug.wizard.session import known_line

    earlier = _session(extension)
    before, now = earlier.diagnosis(), session.diagnosis()
    if extension.wizard is not None:
        extension.wizard.update(session)
    else:
        keep(session)
    extension.session = session
    extension.snapshot = session.snapshot
    for each in (k for k in now.known if k not in before.known):
        print(f"dtdebug: {known_line(each)}")
    if earlier.has_description and answer_of(before, earlier.snapshot) == answer_of(now, session.snapshot):
        print("dtdebug: That does not change the answer:")
    extension.publish(bundle(now, session.snapshot))


def _check(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug.check import notebook_cells

    print(notebook_cells.report(extension.shell.user_ns.get("In", []), rest), end="")


def _doctor(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug.notebook.magic_ranks import show_doctor

    show_doctor(extension, rest)


def _isolate(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug.notebook.isolate_cell import show_isolate

    show_isolate(extension, rest)


def _watch(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug.notebook.instrument_cell import show_watch

    show_watch(extension, rest)


def _run_instrument(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug.notebook.instrument_cell import show_instrument

    show_instrument(extension, "run", rest)


def _rehearse(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug.notebook.instrument_cell import show_instrument

    show_instrument(extension, "rehearse", rest)


def _triage(extension: LiveExtension, rest: list[str]) -> None:
    import time

    from dtdebug.privacy.boundary import diagnose
    from dtdebug.recorded.job_logs import api, html, render
    from dtdebug_taxonomy.knowledge.loader import load

    if not rest:
        print("dtdebug: name logs, or a folder of them: %dtdebug triage logs/")
        return
    began = time.perf_counter()
    job = api.job_of(api.read_part(rest, 1))
    diagnosis = render.relocate_lines(diagnose(load(), job.snapshot), job.places)
    text = render.to_text(job, diagnosis, time.perf_counter() - began)
    extension.publish({"text/plain": text, "text/html": html.card(job, text)})


def _explain(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.presentation.explain import explain, index

    names = [word for word in rest if word != _ALL]
    text = explain(load(), " ".join(names)) if names else index(load())
    if names == rest and names:
        text = _first_screen(text, " ".join(names))
    extension.publish({"text/plain": text, "text/markdown": text if rest else f"```\n{text}\n```"})


def _first_screen(text: str, name: str) -> str:
    """Return the beginning of a page, up to the end of a section if one ends there, and how to get the rest."""
    lines = text.splitlines()
    if len(lines) <= _SCREEN + _SCREEN // 4:
        return text
    heads = [n for n in range(_SCREEN // 2, _SCREEN) if lines[n].startswith("#")]
    shown = lines[: heads[-1] if heads else _SCREEN]
    while shown[-1].startswith("#") or not shown[-1].strip():
        shown.pop()
    return "\n".join([*shown, "", f"{len(lines) - len(shown)} more lines: %dtdebug explain {name} {_ALL}"])


def _learn(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug.learn.pages import answer_page

    text = answer_page(rest, "%dtdebug")
    extension.publish({"text/plain": text, "text/markdown": text})


def _report(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug.privacy.boundary import mask_snapshot
    from dtdebug_taxonomy.presentation.text import to_markdown

    session = _session(extension)
    text = to_markdown(session.diagnosis(), mask_snapshot(session.snapshot))
    if rest:
        Path(rest[0]).write_text(text, encoding="utf-8")
        print(f"dtdebug: wrote {rest[0]}")
    else:
        print(text)


def _state(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug.notebook.magic_ranks import show_ranks

    show_ranks(extension, "state")


def _end(extension: LiveExtension, _words: list[str]) -> None:
    from dtdebug.notebook import magic_ranks

    magic_ranks.end(extension)


def _hang(extension: LiveExtension, rest: list[str]) -> None:
    from dtdebug.notebook.magic_ranks import show_ranks

    show_ranks(extension, "hang")


def _off(extension: LiveExtension, rest: list[str]) -> None:
    extension.quiet = True
    print("dtdebug: quiet; %dtdebug on turns it on again")


def _on(extension: LiveExtension, rest: list[str]) -> None:
    extension.quiet = False
    print("dtdebug: on")


def _debug(extension: LiveExtension, rest: list[str]) -> None:
    extension.debug = True
    print("dtdebug: will show tracebacks of its own failures")


def _help(extension: LiveExtension, rest: list[str]) -> None:
    print(USAGE)


_VERBS: dict[str, Callable[[LiveExtension, list[str]], None]] = {
    "": _wizard,
    "why": _why,
    "ask": _ask,
    "answer": _answer,
    "say": _say,
    "state": _state,
    "hang": _hang,
    "attach": _hang,
    "end": _end,
    "check": _check,
    "doctor": _doctor,
    "isolate": _isolate,
    "bisect": _isolate,
    "watch": _watch,
    "run": _run_instrument,
    "rehearse": _rehearse,
    "triage": _triage,
    "explain": _explain,
    "learn": _learn,
    "report": _report,
    "resume": _resume,
    "off": _off,
    "on": _on,
    "debug": _debug,
    "help": _help,
}
