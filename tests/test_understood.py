"""No command says that all is well of what it did not understand or did not read: it gives the measure instead."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from dtdebug.cli.main import main

CLEARED = ("no rank is late", "healthy", "no rank failed", "nothing found", "training went on", "no known failure")
"""What may only be said with a measure of what was understood."""


def events(kind: str, count: int, name: str = "work") -> list[dict[str, object]]:
    """Complete events of one kind."""
    return [
        {"ph": "X", "name": f"{name} {n % 7}", "cat": kind, "ts": 10 * n, "dur": 9, "pid": 1, "tid": 1}
        for n in range(count)
    ]


def written(folder: Path, kinds: dict[str, int], *, as_array: bool = False) -> list[str]:
    """Traces of two ranks with a number of events of each kind."""
    for rank in range(2):
        rows = [row for kind, count in kinds.items() for row in events(kind, count)]
        content = rows if as_array else {"traceEvents": rows}
        (folder / f"rank{rank}.json").write_text(json.dumps(content))
    return ["slow", str(folder)]


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize(
    "kind", ["FEE", "Op", "devtools.timeline,v8", "PyFunction", "Comm", "", "blink.user_timing", "nvtx", "XLA Ops"]
)
def test_traces_of_other_profilers_clear_no_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, as_array: bool
) -> None:
    words = written(tmp_path, {kind: 300, "cpu_op": 2}, as_array=as_array)
    assert main(words) == 1
    said = capsys.readouterr().out
    assert said.startswith("Not understood: 2 traces; 4 of 604 events are known")
    assert "Expected: " in said
    assert not any(words in said.lower() for words in CLEARED)
    assert main([*words, "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "not_understood"
    assert told["understood"] == {"traces": 0, "of": 2, "events": 604, "known": 4}


def test_a_trace_among_others_that_is_not_understood_keeps_all_from_being_cleared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = written(tmp_path, {"cpu_op": 300})
    (tmp_path / "rank2.json").write_text(json.dumps({"traceEvents": events("FEE", 300)}))
    assert main(words) == 1
    assert capsys.readouterr().out.startswith("Only 2 of 3 traces were understood, so no rank is cleared")


def test_events_whose_boundaries_cannot_be_told_apart_are_given_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dtdebug.recorded.profiler_traces.traces._CHUNK", 1 << 14)
    monkeypatch.setattr("dtdebug.storage.budget.AGAIN", 1 << 22)
    row = {**events("cpu_op", 1)[0], "args": {"text": "}, {" * random.Random(1).randrange(90_000, 100_000)}}
    (tmp_path / "rank0.json").write_text(json.dumps({"traceEvents": [row] * 4}))
    assert main(["slow", str(tmp_path)]) == 2
    assert "can't be told apart" in capsys.readouterr().err
