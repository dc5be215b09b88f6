"""Diagnoses a text alone, for front ends whose kernel can't be asked."""

from __future__ import annotations

import msgspec

from dtdebug import front


class Asked(front.Asked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request to diagnose: what is misspelt is refused."""


def diagnosis(body: bytes) -> bytes:
    """The JSON of the diagnosis of what a body holds; raises ValueError where that is no request."""
    try:
        asked = msgspec.json.decode(body or b"{}", type=Asked)
    except ValueError as error:
        raise ValueError(f"ask with an object of {', '.join(Asked.__struct_fields__)}: {error}") from error
    return msgspec.json.encode(front.diagnose(asked))
