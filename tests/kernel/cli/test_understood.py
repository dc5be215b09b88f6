"""No command says that all is well of what it did not understand or did not read: it gives the measure instead."""

from __future__ import annotations

import gzip
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


def test_a_trace_of_which_nearly_no_time_is_known_is_not_understood(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [*events("cpu_op", 3), {**events("cpu_op", 1)[0], "ts": 1_000_000}]
    (tmp_path / "rank0.json").write_text(json.dumps({"traceEvents": rows}))
    assert main(["slow", str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith("Not understood: 1 trace; 4 of 4 events are known and take 0.0% of the")


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


def lines(form: str, count: int = 300) -> str:
    """Lines of another system's log."""
    rng = random.Random(form)
    return "".join(f"{form}\n".format(n=n, r=rng.randrange(10**9), s=n % 60) for n in range(count))


FOREIGN: dict[str, str | bytes] = {
    "store.log": lines("081109 2036{s:02d} 143 INFO dfs.DataNode: Receiving block blk_{r} src: /10.0.0.1:{n} size {r}"),
    "jobs.log": lines("17/06/09 20:10:{s:02d} INFO executor.Executor: Finished task {n}.0 in stage 2.0 (TID {r})"),
    "vote.log": lines("2015-07-29 17:41:{s:02d},747 - INFO [QuorumPeer:Election@{n}] - Notification time out: {r}"),
    "login.log": lines("Dec 10 06:55:{s:02d} LabSZ sshd[{n}]: reverse mapping checking getaddrinfo for a.b [10.0.0.1]"),
    "web.log": lines('10.0.0.1 - - [10/Oct/2000:13:55:{s:02d} -0700] "GET /a{n}.gif HTTP/1.0" 200 {r}'),
    "phone.log": lines("03-17 16:13:{s:02d}.811  1702  8671 D PowerManager: acquire lock={r}, flags=0x1, tag={n}"),
    "cloud.log": lines("nova-api.log 2017-05-16 00:00:{s:02d}.008 INFO nova.osapi [req-{r}] GET /v2/servers len: {n}"),
    "table.csv": "a,b,c\n" + lines("{n},{r},x"),
    "poem.txt": lines("The curfew tolls the knell of parting day"),
    "events.jsonl": lines('{{"user":{n},"act":"buy"}}'),
    "page.xml": lines("<a><b>{n}</b></a>"),
    "list.json": json.dumps(events("FEE", 50)),
    "tasks.json": "[{},\n" + lines('{{"cat": "gpu,loss", "name": "model epoch", "ts": {n}}},', 99) + "{}]",
    "zero-spans.json": "[\n" + lines('  {{"ph": "B", "name": "A", "ts": {n}}},', 9) + "{}]",
    "bundle.json": json.dumps({"frames": ["x"], "nodes": {}})[:-1] + ',\n"a": "\n' + lines("Thread 1", 40) + '"}',
    "nested.json": '{\n  "gpu": {\n' + lines('    "model {n}": {r},', 99) + '    "rss": 3\n  }\n}\n',
    "flame.json": json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []}),
    "song.mp3": b"ID3\x04" + random.Random(1).randbytes(5_000),
    "sound.wav": b"RIFF" + random.Random(2).randbytes(500),
    "picture.png": b"\x89PNG\r\n\x1a\n" + random.Random(3).randbytes(500),
    "noise": random.Random(4).randbytes(5_000),
    "empty.log": b"",
}  # fmt: skip
COMMANDS = ("", "diagnose", "triage", "slow", "flight", "join", "check", "fix", "compare")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", FOREIGN)
def test_nothing_is_cleared_of_what_is_no_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, command: str
) -> None:
    content = FOREIGN[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        status = main([*([command] if command else []), str(path)])
    except SystemExit as end:
        status = int(end.code or 0)
    shown = capsys.readouterr()
    said = " ".join((shown.out + shown.err).lower().split())

    assert status in (1, 2), said
    assert not any(words in said for words in (*CLEARED, "nothing to fix in 1")), said
    if status == 1:
        assert "not understood: " in said


def test_logs_that_were_read_in_part_are_not_called_healthy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"step {n} loss {1 / (n + 1):.3f}\n" for n in range(200))
    (tmp_path / "rank0.log").write_text(rows)
    (tmp_path / "events.out.tfevents.1.host.0").write_bytes(random.Random(5).randbytes(3_000))
    assert main(["triage", str(tmp_path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "healthy"

    packed = gzip.compress(random.Random(6).randbytes(9_000).hex().encode())
    (tmp_path / "rank1.log.gz").write_bytes(packed[: len(packed) // 2])
    assert main(["triage", str(tmp_path), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "unread"
    assert told["understood"]["known"] >= 200


def test_a_training_in_little_words_is_understood(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "job.log"
    log.write_text(lines("saved part {r} of the table", 60) + "step 1 loss 2.0\nstep 2 loss 1.9\n")
    assert main(["diagnose", str(log), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "no_failure"
    assert told["understood"] == {"lines": 62, "known": 2}


def test_a_post_that_complains_is_never_cleared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Although nothing in what it quotes is a known failure."""
    post = tmp_path / "post.md"
    post.write_text(
        "# KeyError of my rank\n\n'LOCAL_RANK'\n\n"
        '  File "/a/train.py", line 22, in setup\n    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))\n\n'
        "I want to use several GPUs on one host, and it fails. Can you help me?\n"
    )

    assert main([str(post)]) == 1
    assert "no known failure" not in capsys.readouterr().out.lower()


@pytest.mark.parametrize(
    ("line", "step", "status"),
    [
        ("[22:14:07] monitor: pid=77 gpu=6 unreachable", "", "not_understood"),
        ("[22:14:07] monitor: pid=77 gpu=6 unreachable", "[22:14:09] step 40 loss 2.25", "no_failure"),
        ("[22:14:07] monitor: gpu=6 pids=8, 0 unreachable", "", "no_failure"),
    ],
)
def test_a_report_of_a_fault_without_any_step_of_training_is_no_all_clear(tmp_path, capsys, line, step, status):
    """Nothing shows that a job went on after it; the line is shown, as nothing known explains it."""
    file = tmp_path / "monitor.log"
    file.write_text("\n".join(["[22:14:05] monitor: nccl=2.29 gpu=0 pids=8", line, *([step] if step else [])]) + "\n")

    assert main([str(file), "--format", "json"]) == (0 if status == "no_failure" else 1)
    assert json.loads(capsys.readouterr().out)["status"] == status
    main([str(file)])
    assert ("line 2 says: monitor: pid=77" in capsys.readouterr().out) is (status == "not_understood")
