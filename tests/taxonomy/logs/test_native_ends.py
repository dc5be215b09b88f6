"""Ends that runtimes of other languages report: read as failures of their rank, unless training goes on."""

import pytest

from dtdebug.cli.main import main

STEPS = "".join(f"{{p}}step {n} loss {5 - n / 50:.3f}\n" for n in range(100))
ENDS = {
    "glibc": ("python: src/ring.c:412: ring_post: Assertion `slot < depth' failed.\n", "slot < depth", "ring.c:412"),
    "apple": (
        "Assertion failed: (n > 0), function feed, file io/feed.cpp, line 71.\n", "Assertion failed: (n > 0)",
        "feed.cpp:71",
    ),
    "musl": ("Assertion failed: used <= size (pool.c: grow: 9)\n", "used <= size", "pool.c:9"),
    "rust": (
        "thread 'loader-3' (81) panicked at shard.rs:88:14:\nindex out of bounds: the len is 4\nnote: a backtrace\n",
        "Rust panic: index out of bounds: the len is 4", "shard.rs:88",
    ),
    "older rust": ("thread 'main' panicked at 'no shard', src/main.rs:9:5\n", "Rust panic: no shard", "main.rs:9"),
    "go": (
        "panic: assignment to entry in nil map\n\ngoroutine 17 [running]:\nmain.next(0xc0)\n\t/feed.go:71 +0x1d\n",
        "Go panic: assignment to entry in nil map", "",
    ),
    "fortran": ("forrtl: severe (24): end-of-file during read, unit 9\n", "end-of-file during read", ""),
    "jvm": (
        'Exception in thread "main" java.lang.IllegalStateException: no shard left\n\tat feed.Main.run(Main.java:7)\n',
        "IllegalStateException: no shard left", "",
    ),
}  # fmt: skip


def told(capsys, *words):
    status = main([*map(str, words)])
    return status, " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("runtime", ENDS)
def test_the_end_that_a_runtime_reports_is_a_failure(runtime, tmp_path, capsys):
    """Nothing of Python is printed when native code ends the process."""
    text, says, place = ENDS[runtime]
    (tmp_path / "train.log").write_text(STEPS.format(p="") + text)

    status, shown = told(capsys, tmp_path / "train.log")

    assert status == 1
    assert says in shown
    assert place in shown


@pytest.mark.parametrize("runtime", ENDS)
def test_the_rank_that_prints_it_failed(runtime, tmp_path, capsys):
    for rank in range(4):
        end = ENDS[runtime][0] if rank == 2 else ""
        (tmp_path / f"rank{rank}.log").write_text(STEPS.format(p="") + end)

    status, shown = told(capsys, "triage", tmp_path)

    assert status == 1
    assert "rank 2" in shown.lower()
    assert ENDS[runtime][1] in shown


@pytest.mark.parametrize("runtime", ENDS)
def test_training_that_goes_on_was_not_ended_by_it(runtime, tmp_path, capsys):
    """A thread of a loader may panic and be started anew."""
    more = "".join(f"step {n} loss 2.9\n" for n in range(100, 160))
    (tmp_path / "train.log").write_text(STEPS.format(p="") + ENDS[runtime][0] + more + "Training completed\n")

    assert told(capsys, tmp_path / "train.log")[0] == 0


@pytest.mark.parametrize(
    "line",
    [
        "kernel.panic = 10",
        "panic: 0 of 4 workers",
        "assertion failed 0 times",
        "don't panic: retrying",
        "goroutine 1 [running]:",
    ],
)
def test_words_alone_are_no_end(line, tmp_path, capsys):
    (tmp_path / "train.log").write_text(STEPS.format(p="") + f"{line}\nTraining completed\n")

    assert told(capsys, tmp_path / "train.log")[0] == 0
