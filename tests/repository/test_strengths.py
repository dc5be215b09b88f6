"""The benchmark that counts whether hand-set strengths are right."""

import json
import runpy
import subprocess
import sys

import pytest
from places import ROOT

SCRIPT = ROOT / "benchmarks/strengths.py"
FOUND = runpy.run_path(str(SCRIPT))
Row, compare, interval, told_by = (FOUND[name] for name in ("Row", "compare", "interval", "told_by"))


def test_the_interval_is_wilsons():
    assert interval(9, 10) == pytest.approx((0.596, 0.982), abs=0.002)
    assert (0.0, 1.0) == interval(0, 0)


def test_what_is_counted_moves_what_is_told_from_the_word_towards_the_share():
    seen = [Row(f"o/r{i}", "an-indicator", "D.2.1", "rarely", right=True) for i in range(20)]
    told = {how: row(seen[0]) for how, row in told_by(seen).items()}

    assert 0.1 == told["set by hand"]
    assert told["set by hand"] < told["counted for each word"] < told["counted for each indicator"] < 1


def test_counting_helps_where_words_are_wrong_and_is_told_from_other_repositories():
    wrong = [Row(f"o/r{i % 30}", "an-indicator", "D.2.1", "rarely", right=True) for i in range(120)]
    hand, word, _ = compare(wrong)

    assert "0.8100" in hand
    assert float(word.split()[4]) < 0.1
    assert "+0." in word.partition("by hand:")[2]


def test_it_reads_cases_and_prints_both_tables(tmp_path):
    case = {"url": "https://github.com/o/r/issues/1", "framework": "pytorch", "code": "D.1.2", "accept": ["D.1.2"]}
    case |= {"situation": "DDP on 4 GPUs", "evidence": "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"}
    case |= {"accept_fixes": ["fix batch size/data partition"]}
    file = tmp_path / "cases.jsonl"
    file.write_text(
        "".join(json.dumps({**case, "url": f"https://github.com/o/r{i}/issues/1"}) + "\n" for i in range(12))
    )
    done = subprocess.run([sys.executable, SCRIPT, file], capture_output=True, text=True, timeout=120, check=True)

    assert done.stdout.startswith("12 cases of 12 repositories")
    assert "shown in 12, none in 0" in done.stdout
