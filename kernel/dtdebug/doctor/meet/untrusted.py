"""Sanitises another host's report before it is shown or put into commands."""

from __future__ import annotations

import re

from msgspec.structs import replace

from dtdebug.doctor.types import Choice, HostReport
from dtdebug.privacy.sanitize import one_line

_CARD = re.compile(r"[A-Za-z0-9_.:@-]{1,32}")


def sanitize_report(look: HostReport) -> HostReport:
    """Return the report without escapes, and without interfaces whose names are invalid."""
    return replace(
        look,
        host=one_line(look.host, 100) or "?",
        interfaces=tuple(card for card in look.interfaces[:64] if _CARD.fullmatch(card.name)),
        gloo=_choice(look.gloo),
        nccl=_choice(look.nccl),
    )


def _choice(choice: Choice) -> Choice:
    return replace(choice, interface=one_line(choice.interface, 40), given=one_line(choice.given, 200))
