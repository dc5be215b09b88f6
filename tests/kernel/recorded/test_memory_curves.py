"""Memory that logs print: growth of one rank is told from growth of all, and from caches that fill up."""

import math

import pytest

from dtdebug.cli.main import main as dtdebug
from dtdebug.recorded.curves.names import meaning
from dtdebug.recorded.curves.read import read_printed
from dtdebug.recorded.curves.report import judge

FORMS = {
    "bare": "[rank {r}] step {s} loss 1.0 rss {m:.0f} MiB",
    "unit in the name": "INFO rank={r} iter={s} loss=1.0 host_rss_mb={m:.1f} lr=1.0e-04",
    "unit behind": "[rank{r}]: step: {s}  loss: 1.0  memory: {g:.3f}GiB({p:.1f}%)  tps: 7,123",
    "unit in brackets": "[rank{r}] step {s} mem used (MB): {m:.1f}",
}


def log(form, level, ranks=4, steps=12):
    rows = []
    for step in range(0, 10 * steps, 10):
        for rank in range(ranks):
            m = level(rank, step)
            rows.append(FORMS[form].format(r=rank, s=step, m=m, g=m / 1024, p=m / 800))
    return "\n".join(rows) + "\n"


def found(text):
    return [row for row in judge(read_printed(text, "log")).findings if row.kind.startswith("memory")]


def leak_of_2(rank, step):
    return 9000 + 60 * step * (rank == 2) + 3 * rank


@pytest.mark.parametrize("form", FORMS)
def test_a_rank_that_grows_alone_is_named(form) -> None:
    (row,) = found(log(form, leak_of_2))
    assert row.kind == "memory_of_rank"
    assert row.ranks == (2,)
    assert "60 MiB per" in row.says or "60.01 MiB per" in row.says


def test_growth_of_all_ranks_is_no_fault_of_one() -> None:
    (row,) = found(log("bare", lambda rank, step: 3000 + 40 * step + rank))
    assert row.kind == "memory_grows"
    assert row.ranks == ()
    assert "all 4 ranks" in row.says


@pytest.mark.parametrize(
    "level",
    [
        lambda _, step: 9000 + 6000 * (1 - math.exp(-step / 20)),  # a cache fills
        lambda rank, step: 9000 + 4000 * (rank == 1) + (step % 30) * 50,  # more on one rank, and saw teeth
        lambda rank, step: 9000 + 8000 * (rank == 3) * (step >= 60),  # an allocation
        lambda _, step: 9000 + step,  # little
    ],
)
def test_memory_that_does_not_run_away_is_left_alone(level) -> None:
    assert not found(log("bare", level))


def test_amounts_in_growing_units_are_one_curve() -> None:
    rows = [f"step {s} rss {m:.0f} MiB" if m < 1024 else f"step {s} rss {m / 1024:.2f} GiB" for s, m in
            ((s, 300 + 20 * s) for s in range(0, 120, 8))]  # fmt: skip
    curves = read_printed("\n".join(rows), "log").curves
    assert [len(curve) for curve in curves] == [15]
    assert found("\n".join(rows))


@pytest.mark.parametrize("name", ["free memory", "memory limit", "mem util", "mem_pct"])
def test_what_is_not_taken_is_no_memory(name) -> None:
    assert meaning(name) is None


def test_the_leak_leads_when_its_rank_is_killed(tmp_path, capsys) -> None:
    end = "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal SIGKILL\n"
    (tmp_path / "job.log").write_text(log("bare", leak_of_2) + end)
    assert dtdebug(["diagnose", str(tmp_path / "job.log")]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("dtdebug: Rank 2's `rss` grows")
    assert "too small for all ranks" not in said
    assert "what rank 2 keeps" in said


def test_a_leak_of_another_rank_does_not_explain_the_end(tmp_path, capsys) -> None:
    end = "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL\n"
    (tmp_path / "job.log").write_text(log("bare", leak_of_2) + end)
    dtdebug(["diagnose", str(tmp_path / "job.log")])
    assert capsys.readouterr().out.startswith("dtdebug: Rank 1 ended")
