"""The answers to all committed inputs are those of `goldens`; `make goldens` writes them anew, for review as a diff."""

import pytest
from golden_cases import GOLDENS, all_cases, difference, golden, short_answer_faults

from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load

CASES = all_cases()


@pytest.fixture
def update(request):
    """Whether goldens are written in place of being compared."""
    return request.config.getoption("update_goldens")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_answer_is_the_golden_one(case, update):
    """To the letter, for it is data; and its short form has twelve lines at most, each fact once."""
    snapshot = case.read()
    found = diagnose(load(), snapshot)
    assert [] == short_answer_faults(snapshot, found)
    now = golden(snapshot, found)
    before = case.file.read_text(encoding="utf-8") if case.file.exists() else ""
    if update and now != before:
        case.file.parent.mkdir(parents=True, exist_ok=True)
        case.file.write_text(now, encoding="utf-8")
    elif now != before:
        pytest.fail(f"{difference(before, now, case.name)}\n(make goldens writes it anew)", pytrace=False)


def test_every_golden_has_its_case(update):
    """A golden whose case is gone would look like a proof."""
    files = {case.file for case in CASES}
    assert len(files) == len(CASES), "two cases have one name"
    orphans = sorted(file for file in GOLDENS.rglob("*") if file.is_file() and file not in files)
    for file in orphans if update else ():
        file.unlink()

    assert [] == [str(file.relative_to(GOLDENS)) for file in orphans if file.exists()]
