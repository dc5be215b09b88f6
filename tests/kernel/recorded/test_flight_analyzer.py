"""The cases of PyTorch's own flight-recorder analyzer: it says what is noted, and dtdebug answers as it should."""

from __future__ import annotations

import argparse
import copy
import gc
from pathlib import Path
from typing import Any

import flight_cases as cases
import flight_catalogue as catalogue
import flight_data as fr
import flight_jobs as jobs
import pytest

from dtdebug.recorded.flight_recorder import analyse
from dtdebug_taxonomy.model.ranks import Verdict


def answer(folder: Path, dumps: dict[int, Any], form: str = "2.10", age: float = 600.0) -> Verdict:
    """What dtdebug says of dumps."""
    return analyse(fr.write(folder, dumps, form, age=age)).verdict


class TestUpstream:
    """The data say what PyTorch's tests say."""

    @pytest.fixture(autouse=True)
    def recorder(self) -> None:
        pytest.importorskip("torch.distributed.flight_recorder.components.builder")

    @pytest.mark.parametrize("pair", cases.PAIRS, ids=lambda pair: pair.name)
    def test_two_events_match_as_noted(self, pair: cases.Pair) -> None:
        from torch.distributed.flight_recorder.components.utils import match_one_event

        members = {"0": set(range(cases.WORLD))}
        events = (cases.entry(pair.common, 0), cases.entry(pair.odd, 0))
        assert pair.upstream == match_one_event(*events, members, "0").state.name

    @pytest.mark.parametrize("op", cases.COLLECTIVES)
    def test_every_collective_matches_itself(self, op: str) -> None:
        from torch.distributed.flight_recorder.components.utils import match_one_event

        event = cases.entry(cases.valid(op), 0)
        state = match_one_event(event, event, {"0": set(range(cases.WORLD))}, "0").state.name
        assert ("UNDECIDED" if op == "all_to_all" else "FULLY_MATCHED") == state

    @pytest.mark.parametrize(("backend", "taken"), cases.BACKENDS.items())
    def test_backends_are_taken_as_noted(self, backend: str, taken: bool) -> None:
        from torch.distributed.flight_recorder.components.types import Op

        event = cases.entry(cases.Event("all_reduce", backend=backend), 0)
        try:
            assert "all_reduce" == Op(event, {"0": {0, 1}}, "0").type
        except AssertionError:
            assert not taken

    @pytest.mark.parametrize("run", cases.RUNS, ids=lambda run: run.name)
    def test_collectives_of_two_ranks_pass_as_noted(self, run: cases.Run) -> None:
        from torch.distributed.flight_recorder.components.builder import build_db

        dumps = copy.deepcopy(cases.of_run(run))
        options = argparse.Namespace(
            verbose=False, just_print_entries=False, allow_incomplete_ranks=False, mismatch_cap=10
        )
        database = build_db({f"rank_{rank}": {**dump, "rank": rank} for rank, dump in dumps.items()}, options, "2.10")
        found = tuple((one.collective_name.removeprefix("nccl:"), one.pass_check) for one in database.collectives)
        assert run.upstream == found


class TestAnswers:
    @pytest.mark.parametrize("texts", [False, True], ids=["numbers", "texts"])
    @pytest.mark.parametrize(
        ("pair", "odd"), [row[1:] for row in cases.all_pairs()], ids=[row[0] for row in cases.all_pairs()]
    )
    def test_the_odd_rank_is_named_wherever_it_stands(
        self, tmp_path: Path, pair: cases.Pair, odd: int, texts: bool
    ) -> None:
        verdict = answer(tmp_path, cases.of_pair(pair, odd, texts=texts))
        assert verdict.kind in pair.kinds
        if pair.blamed:
            assert (odd,) == verdict.culprits
        elif pair.stays:
            others = tuple(rank for rank in range(cases.WORLD) if rank != odd)
            assert ((odd,) if pair.stays == "odd" else others) == verdict.culprits
        elif verdict.kind in cases.QUIET:
            assert () == verdict.culprits

    @pytest.mark.parametrize("op", cases.COLLECTIVES)
    def test_a_collective_that_all_have_called_alike_has_no_culprit(self, tmp_path: Path, op: str) -> None:
        verdict = answer(tmp_path, {rank: cases.dump(rank, [cases.valid(op, rank)]) for rank in range(cases.WORLD)})
        assert verdict.kind in cases.QUIET
        assert () == verdict.culprits

    @pytest.mark.parametrize("backend", cases.BACKENDS)
    def test_any_backend_is_understood(self, tmp_path: Path, backend: str) -> None:
        usual, odd = (cases.Event("all_reduce", sizes, sizes, backend=backend) for sizes in (cases.SQUARE, cases.TALL))
        dumps = {rank: cases.dump(rank, [odd if rank == 1 else usual]) for rank in range(cases.WORLD)}
        verdict = answer(tmp_path, dumps)
        assert ("wrong_size", (1,)) == (verdict.kind, verdict.culprits)

    @pytest.mark.parametrize("run", cases.RUNS, ids=lambda run: run.name)
    def test_two_ranks_that_have_finished(self, tmp_path: Path, run: cases.Run) -> None:
        assert answer(tmp_path, cases.of_run(run)).kind in run.kinds

    @pytest.mark.parametrize("run", cases.RUNS, ids=lambda run: run.name)
    def test_two_ranks_that_wait(self, tmp_path: Path, run: cases.Run) -> None:
        verdict = answer(tmp_path, cases.of_run(run, waiting=True))
        assert verdict.kind in run.waiting
        if run.culprits:
            assert run.culprits == verdict.culprits

    @pytest.mark.parametrize("enabled", [True, False])
    def test_garbage_collection_is_left_as_it_was(self, tmp_path: Path, enabled: bool) -> None:
        before = gc.isenabled()
        try:
            (gc.enable if enabled else gc.disable)()
            answer(tmp_path, cases.of_run(cases.RUNS[0]))
            assert enabled == gc.isenabled()
        finally:
            (gc.enable if before else gc.disable)()


class TestCatalogue:
    """Synthetic NCCL jobs, of which the truth is known."""

    @pytest.mark.parametrize("name", catalogue.cases())
    def test_the_verdict_is_the_truth(self, tmp_path: Path, name: str) -> None:
        form, case = catalogue.cases()[name]
        dumps, truth = case()
        verdict = answer(tmp_path, dumps, form, catalogue.age(name))
        assert verdict.kind in truth["kinds"]
        assert tuple(truth["culprits"]) == verdict.culprits
        for site in verdict.sites:
            known = truth["where"].get(str(site.rank))
            if known and site.rank in verdict.culprits:
                assert known["file"] == site.file
                assert site.line in known["lines"]

    def test_ranks_that_leave_their_loops_in_different_groups_are_told_with_each_of_these(self, tmp_path: Path) -> None:
        """A stop that each tensor-parallel group would have to agree on, decided by one rank of each."""
        job = jobs.three_d(4, steps=4, tp=2)
        for rank in (0, 3):
            calls = job.programs[rank]
            job.programs[rank] = [*calls[: len(calls) // 2], jobs.collective("barrier", "0", 80, 1)]
        verdict = answer(tmp_path, fr.make(job)[0])

        assert (0, 3) == verdict.culprits
        assert verdict.summary.endswith(" of mesh_tp (1) and mesh_tp (2).")
