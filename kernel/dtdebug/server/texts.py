"""What the server answers without a kernel: the diagnosis of a text, the lessons and labs."""

from __future__ import annotations

import msgspec

from dtdebug import front
from dtdebug.told import FailedCell


class DiagnoseRequest(FailedCell, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request to diagnose: what is misspelt is refused."""


def diagnosis(body: bytes) -> bytes:
    """The JSON of the diagnosis of what a body holds; raises ValueError where that is no request."""
    try:
        asked = msgspec.json.decode(body or b"{}", type=DiagnoseRequest)
    except ValueError as error:
        raise ValueError(f"ask with an object of {', '.join(DiagnoseRequest.__struct_fields__)}: {error}") from error
    return msgspec.json.encode(front.diagnose(asked))


class Listed(msgspec.Struct, frozen=True):
    """A lesson or a lab, as it is listed."""

    id: str
    title: str
    summary: str = ""


class Lessons(msgspec.Struct, frozen=True):
    """All that can be learnt from on a machine without GPUs."""

    lessons: list[Listed]
    labs: list[Listed]


class Lesson(msgspec.Struct, frozen=True):
    """One lesson."""

    file: str
    content: msgspec.Raw


def lessons() -> bytes:
    """The JSON of the list."""
    from dtdebug.learn import notebooks
    from dtdebug_taxonomy.labs import load_labs

    found = [Listed(each.id, each.title, each.summary) for each in notebooks.listed()]
    here = [lab for lab in load_labs().values() if lab.runs == "cpu"]
    labs = [Listed(lab.id, lab.title, f"{lab.framework}, {lab.difficulty}") for lab in here]
    return msgspec.json.encode(Lessons(found, labs))


def lesson(name: str) -> bytes:
    """The JSON of one lesson; raises ValueError if there is none of that name."""
    from dtdebug.learn import notebooks

    try:
        file, content = notebooks.notebook_file(name)
    except KeyError as error:
        raise ValueError(str(error.args[0])) from None
    return msgspec.json.encode(Lesson(file, msgspec.Raw(content)))
