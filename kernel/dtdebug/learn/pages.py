"""Builds the answer of `dtdebug learn NAME [DIR]`: the list, a topic's guide or programs, or a notebook's copy."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtdebug.errors import UsageError

if TYPE_CHECKING:
    from dtdebug.learn.notebooks import LearningNotebook
    from dtdebug_taxonomy.knowledge.topics import Topic, TopicGroup


def answer_page(words: Sequence[str], call: str) -> str:
    """Return the answer as Markdown; `call` is the user's command: `dtdebug`, or `%dtdebug` in a notebook.

    Raises:
        UsageError: nothing has this name, or a file can't be written.

    """
    from dtdebug_taxonomy.presentation import topic_pages

    name, folder = _name_and_folder(words)
    if not name:
        return "\n".join((*_notebooks(call), "", topic_pages.index(call)))
    if notebook := _notebook(name):
        return _copy_notebook(notebook, folder or Path())
    found = _find_topic(name)
    if folder:
        return _write_programs(found, folder)
    from dtdebug_taxonomy.knowledge.loader import load

    return topic_pages.page(load(), found, call)


def record(words: Sequence[str]) -> dict[str, Any]:
    """Return the answer for programs.

    Raises:
        UsageError: nothing has this name, or a folder is given, as files are only written without `--format json`.

    """
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.knowledge.topics import QUESTIONS, Topic, groups
    from dtdebug_taxonomy.presentation import topic_pages

    name, folder = _name_and_folder(words)
    if folder:
        raise UsageError("learn: --format json writes no files; leave DIR or --format away")
    if not name:
        topics = [_row(topic) for group in groups() for topic in group.topics]
        known = {"study": topic_pages.SOURCE, "questions": QUESTIONS, "topics": topics}
        return {**known, "notebooks": [_notebook_row(notebook) for notebook in _list_notebooks()]}
    if notebook := _notebook(name):
        return _notebook_row(notebook)
    found = _find_topic(name)
    markdown = topic_pages.page(load(), found, "dtdebug")
    if not isinstance(found, Topic):
        return {
            "group": found.name,
            "asked": found.question_count,
            "topics": list(map(_row, found.topics)),
            "markdown": markdown,
        }
    more = {field: getattr(found, field) for field in ("symptoms", "checks", "labs")}
    programs = [snippet._asdict() for snippet in found.snippets]
    return {**_row(found), **more, "references": found.reference, "programs": programs, "markdown": markdown}


def _row(topic: Topic) -> dict[str, Any]:
    row = {field: getattr(topic, field) for field in ("name", "group", "title", "gist")}
    return {**row, "asked": topic.question_count}


def _notebook_row(notebook: LearningNotebook) -> dict[str, Any]:
    return {field: getattr(notebook, field) for field in ("id", "number", "title", "summary", "file")}


def _name_and_folder(words: Sequence[str]) -> tuple[str, Path | None]:
    """Split the words: `device usage` is a name, `backends here` is a name and a folder."""
    from dtdebug_taxonomy.knowledge.topics import UnknownTopicError, find

    whole = " ".join(words)
    if len(words) < 2:
        return whole, None
    try:
        find(whole)
    except UnknownTopicError:
        if len(words) > 2:
            raise UsageError(f"learn: one NAME and one DIR at most, not {len(words)} words") from None
        return words[0], Path(words[1]).expanduser()
    return whole, None


def _find_topic(name: str) -> Topic | TopicGroup:
    from dtdebug_taxonomy.knowledge.topics import UnknownTopicError, find

    try:
        return find(name, tuple(notebook.id for notebook in _list_notebooks()))
    except UnknownTopicError as error:
        raise UsageError(f"learn: {error}") from None


def _write_programs(found: Topic | TopicGroup, folder: Path) -> str:
    """Write the programs of a topic or a group; all of them, or none if one exists already."""
    from dtdebug_taxonomy.knowledge.topics import Topic

    topics = (found,) if isinstance(found, Topic) else found.topics
    snippets = [snippet for topic in topics for snippet in topic.snippets]
    if there := [snippet.file for snippet in snippets if (folder / snippet.file).exists()]:
        raise UsageError(f"learn: {folder / there[0]}: already exists and is left as it is; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for snippet in snippets:
            with (folder / snippet.file).open("x", encoding="utf-8") as file:
                file.write(snippet.code)
    except OSError as error:
        raise UsageError(f"learn: {folder}: can't be written: {error.strerror}") from None
    commands = "\n".join(shlex.join(snippet.command) for snippet in snippets)
    return f"Written to {folder}. Run there:\n\n```sh\n{commands}\n```"


def _list_notebooks() -> tuple[LearningNotebook, ...]:
    from dtdebug.learn import notebooks

    return notebooks.list_notebooks()


def _notebook(name: str) -> LearningNotebook | None:
    wanted = name.strip().lower()
    return next((one for one in _list_notebooks() if wanted in (one.id, str(one.number), one.file)), None)


def _notebooks(call: str) -> Iterator[str]:
    yield "# Learn"
    yield ""
    yield "## Notebooks"
    yield ""
    yield f"`{call} learn NAME [DIR]` copies one to a folder of yours."
    yield ""
    for one in _list_notebooks():
        yield f"{one.number}. `{one.id}`: {one.title}{'' if one.title.endswith('?') else '.'} {one.summary}"


def _copy_notebook(notebook: LearningNotebook, folder: Path) -> str:
    from dtdebug.learn import notebooks

    try:
        path = notebooks.copy(notebook.id, folder)
    except OSError as error:
        raise UsageError(f"learn: {folder}: can't be written: {error.strerror}") from None
    other = "" if path.name == notebook.file else f" ({notebook.file} already exists and is left as it is)"
    return f"{notebook.title}: {path}{other}. Open it in Jupyter, or in VS Code."
