"""Pages on topics as Markdown: the list of all, a group, a guide with its links."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import load as checks
from dtdebug_taxonomy.knowledge.labs import load_labs
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.topics import QUESTIONS, Topic, TopicGroup, groups

SOURCE = "TOSEM'23 (https://arxiv.org/abs/2112.06222)"


def index(call: str) -> str:
    """Return all groups and topics with their numbers of questions; `call` is the user's command for dtdebug."""
    return "\n".join(_index(call))


def _index(call: str) -> Iterator[str]:
    yield "## What developers ask"
    yield ""
    yield f"{QUESTIONS} how-to questions in {SOURCE}, by topic; `{call} learn NAME` shows a guide."
    yield ""
    for group in groups():
        yield f"- {group.question_count:>3} `{group.name}`: {group.title}"
        if group.topics[0].name != group.name:
            yield from (f"    - {topic.question_count:>3} `{topic.name}`: {topic.title}" for topic in group.topics)


def page(knowledge: Knowledge, found: Topic | TopicGroup, call: str) -> str:
    """Return the page of a topic or of a group."""
    return "\n".join(_topic(knowledge, found, call) if isinstance(found, Topic) else _group(found, call))


def _group(group: TopicGroup, call: str) -> Iterator[str]:
    yield f"# {group.title}"
    yield ""
    yield f"{group.question_count} of {QUESTIONS} how-to questions in {SOURCE} are about {group.name}:"
    for topic in group.topics:
        yield ""
        yield f"- `{call} learn {topic.name}` ({topic.question_count}): {topic.title} {topic.gist}"


def _topic(knowledge: Knowledge, topic: Topic, call: str) -> Iterator[str]:
    yield f"# {topic.title}"
    yield ""
    yield f"Asked in {topic.question_count} of {QUESTIONS} how-to questions in {SOURCE}. {topic.gist}"
    yield ""
    yield topic.body.rstrip()
    yield ""
    yield "## Go on from here"
    yield ""
    files = ", ".join(f"`{snippet.file}`" for snippet in topic.snippets)
    yield f"- `{call} learn {topic.name} DIR` writes {files} to a folder, ready to run."
    for code in topic.symptoms:
        yield f"- `{call} explain {code}`: {knowledge.symptom(code).title}"
    yield from (f"- `{call} explain {code}`: {checks()[code].title}" for code in topic.checks)
    yield from (f"- `dtdebug lab start {name}`: {load_labs()[name].title}" for name in topic.labs)
    yield ""
    yield "## References"
    yield ""
    yield from (f"- {reference.title}: {reference.url}" for reference in topic.reference)
