"""What `%dtdebug doctor` does: the examination in a process of its own, its answer as a card."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dtdebug.clean import clean

if TYPE_CHECKING:
    from dtdebug.extension import Extension
    from dtdebug.wizard.session import Session

_LIMIT = 300.0


def show_doctor(extension: Extension, words: Sequence[str]) -> None:
    """Examines, shows the card, and lets what was measured answer the wizard's questions."""
    from dtdebug.doctor import card, show
    from dtdebug.doctor.report import Report

    command = [sys.executable, "-P", "-m", "dtdebug", "doctor", "--format", "json", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_LIMIT, stdin=subprocess.DEVNULL, check=False
    )
    line = next((row for row in done.stdout.splitlines() if row.startswith("{")), "")
    if not line:
        print(clean((done.stderr or done.stdout).strip()))
        return
    report = msgspec.json.decode(line, type=Report)
    extension.publish(
        {card.MIME: card.small(report), "text/html": card.html(report), "text/plain": show.to_text(report)}
    )
    known = {k: (v, f"dtdebug doctor: {report.grounds.get(k, '')}") for k, v in report.observations.items()}
    extension.examined = known


def examined(extension: Extension, session: Session) -> Session:
    """The session with what doctor has measured in this notebook."""
    if not extension.examined or session.snapshot.examined == extension.examined:
        return session
    snapshot = msgspec.structs.replace(session.snapshot, examined=extension.examined)
    return msgspec.structs.replace(session, snapshot=snapshot)
