"""Every check reports what its bad examples mark, stays silent on the others, and its fix makes them good."""

import ast
import re

import pytest

from dtdebug_taxonomy.checks import load
from dtdebug_taxonomy.checks.run.examine import applicable, examine
from dtdebug_taxonomy.checks.run.proving import apply
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.knowledge.loader import load as knowledge
from dtdebug_taxonomy.source.kinds import parse_file
from dtdebug_taxonomy.source.python.project import Project

CHECKS = list(load().values())
SECTIONS = ("What it does", "Why is this bad", "Example", "Use instead", "Fix safety", "Known false positives")


def _examples(kind):
    return [
        pytest.param(c, f, id=f"{c.folder.name}-{f.name}")
        for c in CHECKS
        for f in sorted(c.folder.glob(f"{kind}_*"))
        if ".fixed." not in f.name and f.is_file()
    ]


def _found(check, text, path):
    source = parse_file(path, text)
    assert source is not None, f"{path}: no kind of file that is read"
    source.project = Project(lambda name: _beside(check, name))
    return source, [f for f in examine(source, Settings(select=(check.id,))) if f.check is check]


def _beside(check, name):
    """The program that an example of a script starts, or the configuration that it names."""
    file = check.folder / name
    return file.read_text(encoding="utf-8") if name.startswith(("program_", "config_")) and file.is_file() else None


def _marked(text, check):
    return [n for n, line in enumerate(text.split("\n"), 1) if re.search(rf"(#|//) dt: .*\b{check.id}\b", line)]


@pytest.mark.parametrize(
    "file", [f for c in CHECKS[::10] for f in sorted(c.folder.glob("bad_*"))], ids=lambda f: f.name
)
def test_the_checks_that_are_asked_are_those_whose_words_the_text_holds(file):
    """However their words are looked for."""
    text = file.read_text(encoding="utf-8")
    source = parse_file(file.name, text)
    assert source is not None
    wanted = [c for c in CHECKS if source.kind in c.files and not c.optional]
    for part in ("words", "also"):
        wanted = [c for c in wanted if not getattr(c, part) or any(w in text for w in getattr(c, part))]
    assert {c.id for c in applicable(source, Settings())} == {c.id for c in wanted}


@pytest.mark.parametrize(("check", "file"), _examples("bad"))
def test_a_bad_example_is_reported_on_just_the_marked_lines(check, file):
    text = file.read_text(encoding="utf-8")

    source, found = _found(check, text, file.name.removeprefix("bad_") if file.suffix == "" else file.name)

    assert _marked(text, check) == sorted({source.text.place(f.span.start).line for f in found})
    assert all(f.message.endswith(".") for f in found)


@pytest.mark.parametrize(("check", "file"), [*_examples("good"), *_examples("near_miss")])
def test_a_good_example_is_left_alone(check, file):
    _, found = _found(check, file.read_text(encoding="utf-8"), file.name)

    assert [] == found


@pytest.mark.parametrize(("check", "file"), _examples("bad"))
def test_a_fix_parses_silences_its_check_and_changes_nothing_else(check, file):
    text = file.read_text(encoding="utf-8")
    source, found = _found(check, text, file.name)
    expected = file.with_name(f"{file.stem}.fixed{file.suffix}")
    fixes = [f.fix for f in found if f.fix]
    assert bool(fixes) == expected.is_file()
    if not fixes:
        return

    fixed = apply(source.text, fixes)

    assert expected.read_text(encoding="utf-8") == fixed
    assert [] == [f for f in _found(check, fixed, file.name)[1] if f.fix]
    if file.suffix == ".py":
        ast.parse(fixed)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.folder.name)
def test_a_check_is_complete(check):
    files = {f.name for f in check.folder.iterdir()}
    codes, causes = knowledge().symptoms, knowledge().causes

    assert 3 <= sum(f.startswith("bad_") and ".fixed." not in f for f in files)
    assert 3 <= sum(f.startswith("good_") for f in files)
    assert 1 <= sum(f.startswith("near_miss_") for f in files)
    assert all(code in codes for code in check.symptom)
    assert check.symptom[0] == causes[check.cause][0].code
    assert check.pattern == causes[check.cause][1].pattern
    assert check.reference
    assert all(r.url.startswith("https://") for r in check.reference)
    assert list(SECTIONS) == re.findall(r"^## (.*)$", check.page, re.MULTILINE)
    assert not check.title.endswith(".")


OF_SCRIPTS = [
    ("DT917", "bad_1.sh", "unrecognized arguments: --batch_size 64", "bad_1.fixed.sh"),
    ("DT917", "bad_2.sh", "unrecognized arguments: --local-rank=", "good_2.sh"),
    ("DT917", "bad_5.sh", "unrecognized arguments: --hidden_size 64", "bad_5.fixed.sh"),
    ("DT918", "bad_3.sh", "Mesh should not be bigger than default world size", "good_2.sh"),
    ("DT924", "bad_1.sh", "--lr: command not found", "good_1.sh"),
]
"""Examples that need no cluster and no GPU: what the bad one ends with, and the one that runs through."""
TRAIN = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--use_reentrant')\np.add_argument('--lr')\n"


@pytest.mark.ranks
@pytest.mark.parametrize(("code", "bad", "says", "good"), OF_SCRIPTS, ids=lambda value: value.replace(" ", "_"))
def test_a_script_that_is_reported_fails_when_it_is_run_and_the_good_one_does_not(code, bad, says, good, run_script):
    check = load()[code]
    train = ("train.py", f"{TRAIN}p.parse_args()\n")

    ended, text = run_script(check, bad, train)
    assert ended, text[-3000:]
    assert says in text, text[-3000:]

    ended, text = run_script(check, good, train)
    assert ended == 0, text[-3000:]
    assert says not in text


ORACLES = [c for c in CHECKS if (c.folder / "run.py").is_file()]


@pytest.mark.ranks
@pytest.mark.parametrize("check", ORACLES, ids=lambda c: c.folder.name)
def test_a_run_shows_what_the_page_claims(check, run_oracle):
    run_oracle(check)
