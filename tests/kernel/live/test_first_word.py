"""The first word on a job that stands: who is waited for, true of slow jobs, and nothing where no rank waits."""

import pytest

from dtdebug.live.job import first_word as words
from dtdebug.live.job.observe import LiveRanks
from dtdebug_taxonomy.model.ranks import Frame, Operation, RankState

C10D = "/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py"
WAITS = (Frame("/job/train.py", 22, "train"), Frame(C10D, 3252, "all_reduce"))
SAVES = (Frame("/job/train.py", 41, "save"), Frame("/usr/lib/python3/site-packages/torch/serialization.py", 9, "save"))


def rank(number, stack, *, waits, op="all_reduce", seq=7):
    pending = Operation(op=op, group="0", seq=seq) if waits else None
    return RankState(rank=number, world_size=4, alive=True, stack=stack, pending=pending)


WAITING = [rank(n, WAITS, waits=True) for n in (0, 1, 3)]


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ([*WAITING, rank(2, (Frame("/job/train.py", 41, "load"),), waits=False)],
         "slow, or hanging: rank 2 has not reached all_reduce (train.py:41); ranks 0-1,3 wait"),
        ([*WAITING, rank(2, SAVES, waits=False)],
         "slow, or hanging: rank 2 has not reached all_reduce (train.py:41, it saves a checkpoint); ranks 0-1,3 wait"),
        ([*WAITING, rank(2, WAITS, waits=True)],
         "slow, or hanging: ranks 0-3 wait in the same all_reduce #7, none is behind"),
        ([*WAITING, rank(2, WAITS, waits=True, op="barrier")],
         ("slow, or hanging: ranks 0-1,3 wait in all_reduce #7; rank 2 waits in barrier #7; "
          "who is behind is not known yet")),
        ([*WAITING, rank(2, WAITS, waits=True, seq=6)],
         ("slow, or hanging: ranks 0-1,3 wait in all_reduce #7; rank 2 waits in all_reduce #6; "
          "who is behind is not known yet")),
        ([rank(n, WAITS, waits=True, seq=None) for n in range(4)],
         "slow, or hanging: ranks 0-3 wait in all_reduce, who is behind is not known yet"),
        (WAITING, "slow, or hanging: ranks 0-1,3 wait in all_reduce, who is behind is not known yet"),
        ([rank(n, SAVES, waits=False) for n in range(4)], ""),
        ([], ""),
    ],
)  # fmt: skip
def test_who_is_waited_for_is_said(states, said, monkeypatch, tmp_path):
    """Nothing if all are at work, as in a first step that compiles."""
    monkeypatch.setattr(words, "ask_ranks", lambda *_, **__: LiveRanks(states=tuple(states)))
    seen = words.first_look(tmp_path)

    assert words.first_word(tmp_path, seen, 15.2).rpartition("nothing moved")[0].rstrip(",; ") == said


def test_a_job_that_stands_is_told_once_before_the_verdict(monkeypatch, tmp_path):
    """And again only if it has moved without a word."""
    from dtdebug.live.job import monitor as monitors
    from dtdebug.live.job.reporter import Options
    from dtdebug.storage.run_folder import RunFolder

    said, asked = [], []
    speaker = type("Speaker", (), {"remark": lambda _, text: said.append(text), "say": lambda *_: None})()
    hosts = type("Hosts", (), {"reporter": lambda _: ""})()
    monkeypatch.setattr(monitors, "first_look", lambda _: ())
    monkeypatch.setattr(monitors, "first_word", lambda _, __, s: asked.append(s) or ("" if len(asked) == 1 else "slow"))
    watched = monitors.Monitor(RunFolder(tmp_path), None, speaker, Options(), hosts)
    for standing in (15.0, 31.0, 46.0):
        if standing >= watched._foretell_after:
            watched._foretell(standing)

    assert (asked, said) == ([15.0, 31.0], ["slow"])
