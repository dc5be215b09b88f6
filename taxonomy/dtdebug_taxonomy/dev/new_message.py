"""The entry of a new message, with a sample that is run: `make message TEXT='a line that a framework printed'`.

python -m dtdebug_taxonomy.dev.new_message TEXT [MESSAGES_FILE]
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

from dtdebug_taxonomy.dev.new_symptom import SAMPLES, ScaffoldError, shown
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import HOME, Knowledge, KnowledgeError, load, read_record
from dtdebug_taxonomy.knowledge.schema import STRENGTHS, Evidence, MessageFile
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.text import to_text
from dtdebug_taxonomy.text.matchers import lexicon
from dtdebug_taxonomy.text.pattern_matcher import problem_of

_LONGEST_LINE, _LONGEST_PATTERN = 500, 190
_NEAREST = 3
"""Entries whose symptoms are proposed."""
_ID_WORDS = 4
_NAMED = 1.5
"""Bonus for a line with the first word of the file's name, such as `gloo`."""
_PREFIX = re.compile(r"^(?:\[?(?:rank|Rank) ?\d+\]?:? ?|\d+: )+")
_CLASS = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Warning|Interrupt): ")
_VARIES = re.compile(
    r"0x[0-9a-f]+|(?<![\w/])/[\w./-]{2,}|(?P<quoted>(?<!\w)(?P<mark>['\"`])[^'\"`]{1,80}(?P=mark))|\d+|['\u2019]|[\\.^$*+?{}\[\]|()]",
    re.IGNORECASE,
)
_WORD = re.compile(r"[a-z][a-z0-9]{2,}")
_COMMON = frozenset(
    ("and", "are", "but", "can", "for", "from", "has", "have", "not", "that", "the", "this", "was", "with")
)

_ENTRY = Template("""
# One entry is one meaning; add a pattern for each spelling. Take these comments away when it is right.
[[evidence]]
id = "$id"
# What it says of the run, in a sentence.
means = $means
# Within one line; upper and lower case alike. Let only paths, numbers and quotes vary, with bounds (.{0,80}).
text = ['$pattern']
# Of the faults that show this first, how many are which symptom: always, usually, often, sometimes, rarely.
# Taken from the nearest entries: $near.
symptoms = { $symptoms }
# Where it is printed: an address, or file and function of a named release. `make tidy` asks for it.
cite = ""
# More keys, if they apply: role = "cascade" (knock-on of another failure) or "advice" (printed in healthy runs too);
# generic = true (one process prints it too); names = ["id-of-the-cause-that-the-message-itself-names"].
""")
_NEXT = Template("""\
next:
  1. Correct the entry: the comment above each key says what it means.
  2. Replace the sample by more of the real output, without names, paths and addresses.
  3. `make tidy` lists what is still missing.
  4. `.venv/bin/python -m pytest tests/taxonomy/diagnosis/test_samples.py -k $name` runs the sample.""")
_EXCEPTION = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/job/train.py", line 42, in <module>
[rank1]: {}
"""


class Draft(NamedTuple):
    """A new entry, and the sample that shows it."""

    file: Path
    entry: str
    sample: Path
    output: str
    symptom: str


def draft(line: str, file: str = "", home: Path = HOME, samples: Path = SAMPLES) -> Draft:
    """The entry and the sample of a message, not yet written.

    Raises:
        ScaffoldError: no usable line, a message that is known, no such file, or not at the repository's root.

    """
    message = _message(line)
    if not samples.is_dir():
        raise ScaffoldError(f"{samples}: no such folder; run this at the root of the repository")
    knowledge = load(home)
    if file and file not in knowledge.messages:
        raise ScaffoldError(f"FILE={file}: no such file; one of {', '.join(sorted(knowledge.messages))}")
    for hit in lexicon(knowledge).hits(line):
        if (known := knowledge.evidence.get(hit.key)) and not known.catch_all:
            raise ScaffoldError(f"known already as {known.id}: {known.means}")
    near = _nearest(knowledge, line, file)
    if not near:
        raise ScaffoldError("no entry is like it: name the file, such as FILE=torch-process-group")
    name = file or max(near, key=lambda n: math.fsum(score for other, _, score in near if other == n[0]))[0]
    symptoms = _symptoms([e for _, e, _ in near[:_NEAREST]])
    pattern = _pattern(message)
    if problem := problem_of(pattern):
        raise ScaffoldError(f"no pattern can be made of it: {problem}")
    short = _short(message, name, knowledge)
    entry = _ENTRY.substitute(
        id=short,
        means=json.dumps(f"It prints: {_CLASS.sub('', message).rstrip('.')}.", ensure_ascii=False),
        pattern=pattern,
        near=", ".join(e.id for _, e, _ in near[:_NEAREST]),
        symptoms=", ".join(f'"{code}" = "{word}"' for code, word in symptoms.items()),
    )
    symptom = knowledge.symptoms[next(iter(symptoms))].id
    sample = samples / symptom / f"{short}.txt"
    if sample.exists():
        raise ScaffoldError(f"{shown(sample)}: already exists")
    output = _EXCEPTION.format(message) if _CLASS.match(message) else f"[rank1]: {message}\n"
    return Draft(home / "messages" / f"{name}.toml", entry, sample, output, symptom)


def _message(line: str) -> str:
    text = line.strip()
    if not text:
        raise ScaffoldError("give the line that was printed: make message TEXT='NCCL WARN Bootstrap : no socket found'")
    if len(text.splitlines()) > 1 or not text.isprintable():
        raise ScaffoldError("give one line of plain text, the one that says what is wrong")
    if len(text) > _LONGEST_LINE:
        raise ScaffoldError(f"{len(text)} characters: shorten it to {_LONGEST_LINE}")
    message = _PREFIX.sub("", text)
    if len(_words(message)) < 2:
        raise ScaffoldError(f"{text!r}: too few words to know it again")
    return message


def _words(text: str) -> list[str]:
    return [w for w in _WORD.findall(text.lower()) if w not in _COMMON]


def _nearest(knowledge: Knowledge, line: str, file: str) -> list[tuple[str, Evidence, float]]:
    """Entries with words of the line, the likest first, each with its file: shared words count by their rarity."""
    rows = [
        (name, e, {*_words(f"{name} {' '.join(e.text)} {e.means}")})
        for name, m in knowledge.messages.items()
        for e in m.evidence
        if e.text and e.symptoms and e.role == "root" and (not file or name == file)
    ]
    seen = Counter(word for *_, words in rows for word in words)
    wanted = {*_words(line)}

    def score(name: str, words: set[str]) -> float:
        shared = math.fsum(math.log(1 + len(rows) / seen[w]) for w in words & wanted)
        return shared / math.sqrt(len(words) + 5) + _NAMED * (name.split("-", 1)[0] in wanted)

    scored = [(name, e, score(name, words)) for name, e, words in rows if file or words & wanted]
    return sorted(scored, key=lambda row: (-row[2], row[1].id))[: 2 * _NEAREST]


def _symptoms(near: Sequence[Evidence]) -> dict[str, str]:
    """The two that the nearest entries have most, with cautious strengths: no counts exist yet."""
    weight: defaultdict[str, float] = defaultdict(float)
    for place, e in enumerate(near, 1):
        for code, word in e.symptoms.items():
            weight[code] += STRENGTHS[word] / place
    return dict(zip(sorted(weight, key=lambda code: -weight[code]), ("often", "sometimes"), strict=False))


def _pattern(message: str) -> str:
    """The message as a pattern: what varies from run to run is bounded, all else stands as it is."""
    text = _CLASS.sub("", message)
    parts: list[str] = []
    at = length = 0
    for match in (*_VARIES.finditer(text), None):
        before = text[at : match.start() if match else len(text)]
        piece = before + (_varying(match) if match else "")
        if length + len(piece) > _LONGEST_PATTERN:
            parts.append(before[: _LONGEST_PATTERN - length].rpartition(" ")[0])
            break
        parts.append(piece)
        length += len(piece)
        at = match.end() if match else len(text)
    return "".join(parts).strip()


def _varying(match: re.Match[str]) -> str:
    if match["quoted"]:
        return ".{1,80}"
    found = match[0]
    if found.startswith("/"):
        return r"\S{1,120}"
    if found.lower().startswith("0x"):
        return "0x[0-9a-f]{1,16}"
    if found.isdigit():
        return r"\d{1,9}"
    return "." if found in "'\u2019" else f"\\{found}"


def _short(message: str, name: str, knowledge: Knowledge) -> str:
    """A free id: the file's first word, then words of the message."""
    stem = name.split("-", 1)[0]
    words = [w for w in dict.fromkeys(_words(_CLASS.sub("", message))) if w != stem][:_ID_WORDS]
    short = "-".join([stem, *words])
    taken = sum(1 for other in knowledge.evidence if re.fullmatch(rf"{re.escape(short)}(-\d+)?", other))
    return f"{short}-{taken + 1}" if taken else short


def main(arguments: Sequence[str], home: Path = HOME, samples: Path = SAMPLES) -> int:
    """Writes entry and sample and prints the answer to the sample; exit status 2 if that can't be done."""
    try:
        line, file = (*arguments, "", "")[:2]
        new = draft(line, file.removesuffix(".toml"), home, samples)
        new.sample.parent.mkdir(exist_ok=True)
        with new.file.open("a", encoding="utf-8") as stream:
            stream.write(new.entry)
        new.sample.write_text(new.output, encoding="utf-8")
        knowledge = _with(load(home), new.file)
    except (ScaffoldError, KnowledgeError) as error:
        print(f"message: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"message: {error.filename}: can't be written: {error.strerror}", file=sys.stderr)
        return 2
    answer = diagnose(knowledge, Snapshot(output=new.output))
    first = answer.symptoms[0].id if answer.symptoms else "nothing"
    print(f"added to {shown(new.file)}:{new.entry}\nthe answer to {shown(new.sample)}:\n\n{to_text(answer, 1)}\n")
    print(f"first symptom: {first}" + ("" if first == new.symptom else f", not {new.symptom}: look at `symptoms`"))
    print(_NEXT.substitute(name=new.sample.stem))
    return 0


def _with(knowledge: Knowledge, file: Path) -> Knowledge:
    """The knowledge with a file of messages as it is now."""
    return Knowledge(
        tuple(knowledge.symptoms.values()),
        {**knowledge.messages, file.stem: read_record(file, MessageFile)},
        tuple(knowledge.observations.values()),
        tuple(knowledge.patterns.values()),
        knowledge.measures,
        knowledge.releases,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
