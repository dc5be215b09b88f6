"""Answers requests that need no kernel: the diagnosis of a text, the lessons and labs."""

from __future__ import annotations

import msgspec

from dtdebug.notebook import front_end_api
from dtdebug.notebook.front_end_answers import FailedCell


class DiagnoseRequest(FailedCell, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of a request to diagnose; misspelt fields are rejected."""


def diagnosis(body: bytes) -> bytes:
    """Return the JSON of the diagnosis of a request's body; raises ValueError if the body is invalid."""
    try:
        asked = msgspec.json.decode(body or b"{}", type=DiagnoseRequest)
    except ValueError as error:
        raise ValueError(f"ask with an object of {', '.join(DiagnoseRequest.__struct_fields__)}: {error}") from error
    return msgspec.json.encode(front_end_api.diagnose(asked))


class ListEntry(msgspec.Struct, frozen=True):
    """Lesson or lab in the list."""

    id: str
    title: str
    summary: str = ""


class Lessons(msgspec.Struct, frozen=True):
    """All lessons and labs that run on a machine without GPUs."""

    lessons: list[ListEntry]
    labs: list[ListEntry]


class Lesson(msgspec.Struct, frozen=True):
    """Content of one lesson."""

    file: str
    content: msgspec.Raw


def lessons() -> bytes:
    """Return the JSON of the list."""
    from dtdebug.learn import notebooks
    from dtdebug_taxonomy.knowledge.labs import load_labs

    found = [ListEntry(each.id, each.title, each.summary) for each in notebooks.list_notebooks()]
    here = [lab for lab in load_labs().values() if lab.runs == "cpu"]
    labs = [ListEntry(lab.id, lab.title, f"{lab.framework}, {lab.difficulty}") for lab in here]
    return msgspec.json.encode(Lessons(found, labs))


def lesson(name: str) -> bytes:
    """Return the JSON of one lesson; raises ValueError if there is none of that name."""
    from dtdebug.learn import notebooks

    try:
        file, content = notebooks.notebook_file(name)
    except KeyError as error:
        raise ValueError(str(error.args[0])) from None
    return msgspec.json.encode(Lesson(file, msgspec.Raw(content)))
