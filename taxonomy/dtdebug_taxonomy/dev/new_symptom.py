"""The files of a new symptom: `make symptom NAME=what-is-seen`.

python -m dtdebug_taxonomy.dev.new_symptom NAME
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template

from dtdebug_taxonomy.knowledge.loader import HOME, KnowledgeError, read_record
from dtdebug_taxonomy.knowledge.schema import Symptom

SAMPLES = Path("tests/samples")
OWN = "X."
"""Codes of the study begin with A to D; ours begin so."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 60

_SYMPTOM = Template('''\
## A symptom is what is SEEN. Lines that begin with ## explain. Lines that begin with # are examples:
## take the "# " away and write your own. `make tidy` lists what is still to be written.
## Words for "how often": always, usually, often, sometimes, rarely, never.

code = "$code"
name = "$words"
## What is seen, short, without a full stop.
title = "$title"
## When it shows: build, communication-setup, preparation or training.
stage = "training"
## failure (it ends with an error) or abnormal-behaviour (it runs, but wrongly).
kind = "failure"
## ours: the study does not have it.
provenance = "ours"
## 3 to 6 sentences for a newcomer: what it looks like, what it usually means in distributed training, why one
## process does not show it.
summary = ""
## 2 or 3 sentences: how to tell it from its neighbours.
apart = ""
## At least 8 whole sentences as users write them before they paste any output: other frameworks, other situations,
## other words each time. A text that is like them speaks for this symptom, a little.
says = [
#   "On the second node every rank prints a message that I have never seen, and the job ends.",
]

## The study saw none, so only evidence makes this symptom likely. Leave it so.
[counts.tosem23]
faults = 0
distributed_specific = 0

## Of the runs with this symptom, how many show which value of an observation: observations/KEY.toml has the keys and
## their values. Say at least what was running and how it shows; a value that is not named shares what is left.
[observed]
# activity = { training = "usually" }
# manifestation = { exception = "usually" }

## One concrete thing that is wrong, named by what is wrong, not by its remedy. `pattern` is an id of patterns.toml;
## `effort` is glance, edit, restart, rerun, reinstall or hardware, seeing whether it helped included.
## `evidence`: of the runs with THIS cause, how many show it (evidence id, or observation=value).
# [[cause]]
# id = "one-concrete-thing"
# title = "One concrete thing is wrong"
# pattern = "fix-communication-configuration"
# why = "How it leads to what is seen."
# fix = "What to do, as an order."
# effort = "edit"
# diff = """
# -the line that is wrong
# +the line that is right
# """
# evidence = { "$id-printed" = "usually", "works_with_one_process=yes" = "usually" }

## A fact that shows it. `text`: patterns on program output; `says`: on the user's words; `exception`: names of classes.
## Write bounded repeats (.{0,80}), no look-around, and at least three letters that must occur.
## `symptoms` asks the other way round: of the faults that show this FIRST, how many are which symptom? About 1 in sum.
## A message that several symptoms share belongs in messages/ instead.
# [[evidence]]
# id = "$id-printed"
# means = "A rank prints the message of this symptom."
# text = ['here stands what .{0,40}printed']
# symptoms = { "$code" = "usually" }
# cite = "release, file and function that print it"

## At least two addresses that you have looked up.
# [[reference]]
# title = "The page's own title"
# url = "https://pytorch.org/docs/stable/distributed.html"
''')

_SAMPLE = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/job/train.py", line 42, in <module>
[rank1]: RuntimeError: here stands what a run really printed
"""

_NEXT = Template("""\
wrote $symptom
wrote $sample
next:
  1. Fill in the symptom: above each key stands what it means.
  2. Replace the sample by real ones: FRAMEWORK-SHORT-NAME.txt is what a run printed,
     FRAMEWORK-SHORT-NAME.said.txt what its user said. Three frameworks are needed.
  3. `make tidy` lists what is still to be written.
  4. `.venv/bin/python -m pytest tests/taxonomy/diagnosis -k $id`: each sample must come out as this symptom.""")


class ScaffoldError(ValueError):
    """The files can't be made: the text is the one line that the user sees."""


def scaffold(name: str, home: Path = HOME, samples: Path = SAMPLES) -> tuple[Path, Path]:
    """Writes the skeleton of a symptom and its first sample; returns where they are.

    Raises:
        ScaffoldError: no or a bad name, files that are there already, or not at the repository's root.

    """
    if not name:
        raise ScaffoldError("name what is seen: make symptom NAME=loss-differs-on-ranks")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise ScaffoldError(f"{name!r}: lower-case words joined by '-', at most {_LONGEST} characters")
    if not samples.is_dir():
        raise ScaffoldError(f"{samples}: no such folder; run this at the root of the repository")
    symptom, sample = home / "symptoms" / f"{name}.toml", samples / name / "torch-example.txt"
    for path in (symptom, sample.parent):
        if path.exists():
            raise ScaffoldError(f"{shown(path)}: already exists; choose another name")
    words = name.replace("-", " ")
    text = _SYMPTOM.substitute(id=name, code=_free_code(home), words=words, title=words.capitalize())
    symptom.write_text(text, encoding="utf-8")
    sample.parent.mkdir()
    sample.write_text(_SAMPLE, encoding="utf-8")
    return symptom, sample


def _free_code(home: Path) -> str:
    codes = [read_record(f, Symptom).code for f in (home / "symptoms").glob("*.toml")]
    taken = [int(code[len(OWN) :]) for code in codes if re.fullmatch(re.escape(OWN) + r"\d+", code)]
    return f"{OWN}{max(taken, default=0) + 1}"


def shown(path: Path) -> Path:
    """A path as seen from here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def main(arguments: Sequence[str], home: Path = HOME, samples: Path = SAMPLES) -> int:
    """Makes the files of the one symptom that is named; exit status 2 if that can't be done."""
    try:
        symptom, sample = scaffold(" ".join(arguments), home, samples)
    except (ScaffoldError, KnowledgeError) as error:
        print(f"symptom: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"symptom: {error.filename}: can't be written: {error.strerror}", file=sys.stderr)
        return 2
    print(_NEXT.substitute(symptom=shown(symptom), sample=shown(sample), id=symptom.stem))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
