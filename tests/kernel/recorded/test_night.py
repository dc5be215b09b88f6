"""A job that fails at night: one file and one file per node name the same rank, in every manner of starting it.

Claims and verdicts are compared, never sentences. Other jobs: `make(folder, SEED, manner, fault, ranks)`.
"""

import json
import random

import night_jobs as jobs
import pytest

from dtdebug.cli.main import main
from dtdebug.cli.readings import snapshot_of
from dtdebug.errors import FOUND, NOTHING
from dtdebug.recorded.job_logs.api import read_part
from dtdebug.recorded.job_logs.job_view import view
from dtdebug.recorded.log_files import excerpt
from dtdebug.recorded.logs import Logs
from dtdebug_taxonomy.logs.log import read_output
from dtdebug_taxonomy.logs.log_end import is_stop, read_end, stopped_log

KINDS = {
    "silent": {"not_arrived"},
    "lagging": {"not_arrived"},
    "raised": {"dead"},
    "killed": {"dead", "not_arrived"},
}
"""What is said of the rank at fault; of a killed one the launcher does not always say how it ended."""
SIZES = (8, 16, 32, 64)


def verdicts(planted):
    """Of `diagnose` on the one file, and of `triage` on it and on the files of the nodes."""
    snapshot, _ = snapshot_of(Logs([str(planted.file)]), "")
    alone = snapshot.verdict or stopped_log(read_output(snapshot))
    return [alone, *(view(read_part([str(path)], 1)).verdict for path in (planted.file, planted.folder))]


@pytest.mark.parametrize("fault", jobs.FAULTS)
@pytest.mark.parametrize("manner", jobs.MANNERS)
def test_the_rank_at_fault_is_named_whatever_launched_it(tmp_path, manner, fault):
    """Neither a task of the scheduler nor the end of a launcher is taken for it."""
    seed = 9_000 + 100 * jobs.MANNERS.index(manner) + jobs.FAULTS.index(fault)
    planted = jobs.make(tmp_path, seed, manner, fault, random.Random(seed).choice(SIZES))
    found = verdicts(planted)

    if fault == "fine":
        assert [None] * 3 == found
    elif fault == "stopped":
        assert all(map(is_stop, found))
        assert {planted.step} == {verdict.claims[0].count for verdict in found}
    else:
        assert [(planted.culprit,)] * 3 == [verdict.culprits for verdict in found]
        assert len({verdict.kind for verdict in found}) == 1
        assert {verdict.kind for verdict in found} <= KINDS[fault]


def test_a_job_of_hundreds_of_ranks_is_read_alike(tmp_path):
    """The one file is too long to be read whole."""
    planted = jobs.make(tmp_path, 40, "slurm-nodes", "silent", 400)
    found = verdicts(planted)

    assert planted.file.stat().st_size > excerpt.WHOLE
    assert [("not_arrived", (planted.culprit,))] * 3 == [(v.kind, v.culprits) for v in found]
    assert len({v.summary for v in found}) == 1


@pytest.mark.parametrize("command", ["diagnose", "triage"])
def test_a_log_that_stops_is_no_all_clear(tmp_path, capsys, command):
    """It may be that the job hangs: what looks at it comes next."""
    planted = jobs.make(tmp_path / "a", 51, "slurm-nodes", "stopped", 64)
    for path in (planted.file, planted.folder):
        assert main([command, str(path)]) == FOUND
        out = capsys.readouterr().out
        assert f"step {planted.step}" in out.split("\n", maxsplit=1)[0]
        assert "dtdebug attach" in out
        assert main([command, str(path), "--format", "json"]) == FOUND
        assert json.loads(capsys.readouterr().out)["verdict"]["kind"] == "not_understood"
    fine = jobs.make(tmp_path / "b", 51, "slurm-nodes", "fine", 64)
    for path in (fine.file, fine.folder):
        assert main([command, str(path)]) == NOTHING


STEPS = [f"step {n} loss 2.1" for n in range(4790, 4811, 2)]


@pytest.mark.parametrize(
    ("rows", "stops"),
    [
        (STEPS, True),
        ([*STEPS, ""], True),
        (["heartbeat 1", *STEPS, "heartbeat 2"], True),
        ([*STEPS, "evaluating"], False),
        (["saved /ckpt/1.pt", *STEPS, "saved /ckpt/2.pt"], False),
        ([*STEPS, "training finished"], False),
        ([*STEPS, "wandb: Run history:"], False),
        ([f"step {n}/4810 loss 2.1" for n in range(4800, 4811)], False),
        ([f"step {n}/9000 loss 2.1" for n in range(4800, 4811)], True),
        ([f"step {n} loss 2.1" for n in range(1000)], False),
        (["Epoch 0:  48%|████      | 481/1000 [09:10<10:31,  0.49it/s]"], True),
        (["Epoch 0: 100%|████████████| 1000/1000 [19:10<00:00,  0.49it/s]"], False),
        (["Loading shards:  48%|████      | 481/1000 [09:10<10:31,  0.49it/s]"], False),
        (STEPS[:4], False),
    ],
)
def test_signs_of_an_end(rows, stops):
    """The end of a plan, words of an end, or any other line that was not printed before."""
    assert read_end(rows).stops is stops
