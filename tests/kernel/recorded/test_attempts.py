"""Attempts of one job: restart, leave something out, or stop; and what one attempt can't show."""

from __future__ import annotations

from pathlib import Path

import pytest
from attempt_histories import draw

from dtdebug.cli.main import main
from dtdebug.recorded.attempts.attempt import Attempt
from dtdebug.recorded.attempts.decision import Decision, decide
from dtdebug.recorded.attempts.history import attempts_of


@pytest.mark.parametrize("number", range(40))
def test_the_decision_on_a_drawn_history_is_right(number: int, tmp_path: Path) -> None:
    """Whatever the layout of its logs: the action, what it leaves out, and the number of attempts."""
    drawn = draw(11, number, tmp_path)
    attempts = attempts_of(drawn.paths)
    decision = decide(attempts)
    assert (len(attempts), decision.action, decision.what) == (drawn.attempts, drawn.action, drawn.what)


def test_one_attempt_shows_nothing_about_repetition() -> None:
    """It may fail again or not: the decision says so instead of guessing."""
    decision = decide([_failed("KeyError: 'x'", step=3)])
    assert decision.action == "unknown"
    assert "one attempt shows nothing about repetition" in decision.headline


def test_a_failure_of_the_network_at_one_step_is_not_stopped_at_once() -> None:
    """It may pass; only many attempts without progress show that it does not."""
    rows = [_failed("ConnectionResetError: peer", kind="machine") for _ in range(5)]
    assert decide(rows[:3]).action == "restart"
    assert decide(rows).action == "stop"


def test_changed_code_that_did_not_help_is_said() -> None:
    """A stop after a change of the code names that change."""
    decision = decide([_failed("KeyError: 'x'", code="aaaaaaa"), _failed("KeyError: 'x'", code="bbbbbbb")])
    assert decision.action == "stop"
    assert "The code changed in between" in decision.why


def test_what_was_lost_counts_from_the_last_checkpoint() -> None:
    """In steps, and in hours where the log has times."""
    row = _failed("ValueError: y", step=1_264, saved=1_000, saved_time=0.0, ended=5_400.0)
    decision: Decision = decide([_failed("KeyError: 'x'", step=40), row])
    assert (decision.lost_steps, decision.lost_hours) == (264, 1.5)


def test_logs_of_ranks_are_no_attempts(tmp_path: Path) -> None:
    """They run at the same time."""
    for rank in range(3):
        lines = [f"2026-03-02 10:0{n}:0{rank},000 INFO step {n} loss 2.0" for n in range(9)]
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(lines) + "\n")
    assert attempts_of([str(tmp_path)]) == ()


def test_triage_prints_the_decision_on_a_folder_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the first line, with the attempts as its records."""
    drawn = next(d for n in range(3, 200, 10) if (d := draw(5, n, tmp_path / str(n))).layout != "one-log")
    assert main(["triage", *drawn.paths]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("dtdebug: Stop: the same ")
    assert f"in {drawn.attempts} of {drawn.attempts} attempts" in " ".join(printed.split())
    assert "attempt 1" in printed or drawn.attempts > 4


def _failed(words: str, *, kind: str = "program", **facts: object) -> Attempt:
    values: dict[str, object] = {"name": "a", "kind": kind, "root": f"{words}|train.py:9|", "words": words, "step": 7}
    return Attempt(**{**values, **facts})  # type: ignore[arg-type]
