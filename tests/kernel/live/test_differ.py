"""What differs between ranks at rest, and how suspicious that is."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtdebug.live.probe.rank_differences import differences, to_text
from dtdebug_taxonomy.model.ranks import RankState

KEYS = ["NCCL_IB_DISABLE", "RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "SLURM_PROCID", "MY_FLAG"]
environments = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["0", "1", "a b", "eth0"]))
jobs = st.lists(st.tuples(environments, environments), max_size=12).map(
    lambda rows: [
        RankState(rank=i, host=f"h{i // 4}", local_rank=i % 4, environment=e, facts=f) for i, (e, f) in enumerate(rows)
    ]
)


def job(ranks=8, **of_rank):
    """Ranks on two hosts of four devices each; `of_rank` has the extra fields of some ranks."""
    return [
        msgspec.structs.replace(
            RankState(
                rank=r,
                local_rank=r % 4,
                host="ab"[r // 4],
                pid=100 + r,
                environment={"RANK": str(r), "LOCAL_RANK": str(r % 4), "CUDA_VISIBLE_DEVICES": str(r % 4)},
                versions={"torch": "2.13.0"},
                facts={"endpoint": f"127.0.0.1:{r}"},
            ),
            **of_rank.get(f"r{r}", {}),
        )
        for r in range(ranks)
    ]


def with_environment(state, **variables):
    """The same rank with more variables."""
    return msgspec.structs.replace(state, environment={**state.environment, **variables})


def by_key(states):
    """Differences by name."""
    return {d.key: d for d in differences(states)}


def test_ranks_that_differ_by_design_raise_no_suspicion():
    """Rank, local rank and one device for each are how it should be; roads are no property of the run."""
    found = by_key(job())

    assert {"RANK", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES"} == set(found)
    assert {"expected"} == {d.suspicion for d in found.values()}
    assert "3 more differ as they should" in to_text(differences(job()))


def test_the_one_rank_with_another_library_version_is_named():
    """The sentence has the odd rank first, and that it must be the same."""
    found = by_key(job(r3={"versions": {"torch": "2.12.1"}}))["torch"]

    assert ("wrong", (3,)) == (found.suspicion, found.odd)
    assert "the version of torch is 2.12.1 on rank 3, 2.13.0 on the other 7: it must be the same on all ranks." == (
        found.sentence
    )


def test_a_variable_that_one_host_has_not_is_tied_to_the_host():
    """Half and half has no majority: no rank is called odd, but the host is said."""
    states = [with_environment(s, NCCL_IB_DISABLE="1") if s.host == "b" else s for s in job()]
    found = by_key(states)["NCCL_IB_DISABLE"]

    assert ("wrong", ()) == (found.suspicion, found.odd)
    assert (("not set", (0, 1, 2, 3)), ("1", (4, 5, 6, 7))) == found.values
    assert "(host b)" in found.sentence


def test_an_interface_may_have_another_name_on_another_host():
    """Between hosts it is only odd; on one host it is wrong."""
    per_host = [with_environment(s, NCCL_SOCKET_IFNAME=f"eth{s.host}") for s in job()]
    one_rank = [with_environment(s, NCCL_SOCKET_IFNAME="lo" if s.rank == 2 else "eth0") for s in job()]

    assert "odd" == by_key(per_host)["NCCL_SOCKET_IFNAME"].suspicion
    assert "wrong" == by_key(one_rank)["NCCL_SOCKET_IFNAME"].suspicion


@pytest.mark.parametrize("key", ["batches", "dataset_length", "batch_size", "len(train_set) samples"])
def test_another_amount_of_work_is_wrong(key):
    """The rank with fewer batches leaves the loop first."""
    states = [msgspec.structs.replace(s, facts={key: "98" if s.rank == 5 else "100"}) for s in job()]
    found = by_key(states)[key]

    assert ("wrong", (5,)) == (found.suspicion, found.odd)
    assert "is 98 on rank 5, 100 on the other 7" in found.sentence


def test_two_ranks_on_one_device_are_found_though_nothing_differs():
    """Each sees one device only, and it is the same: what must differ does not."""
    states = [with_environment(s, CUDA_VISIBLE_DEVICES="0") for s in job(4)]
    found = by_key(states)["CUDA_VISIBLE_DEVICES"]

    assert ("wrong", (0, 1, 2, 3)) == (found.suspicion, found.odd)
    assert "ranks 0-3 on host a share CUDA_VISIBLE_DEVICES 0" in found.sentence


def test_all_devices_visible_to_all_ranks_is_usual():
    """Each rank then picks its own by its local rank."""
    states = [with_environment(s, CUDA_VISIBLE_DEVICES="0,1,2,3") for s in job(4)]

    assert "CUDA_VISIBLE_DEVICES" not in by_key(states)


def test_two_processes_with_one_rank_are_found():
    """As when a launcher of single processes is used on two hosts."""
    states = [*job(2), msgspec.structs.replace(job(1)[0], host="b", pid=7)]

    assert "2 processes (a:100, b:7) call themselves rank 0" in to_text(differences(states))


def test_a_package_not_imported_on_a_rank_is_no_difference():
    """It tells of the code that ran, not of the machine."""
    assert "nccl" not in by_key(job(r1={"versions": {"torch": "2.13.0", "nccl": "2.27"}}))


def test_a_fact_that_was_not_recorded_on_a_rank_is_no_difference():
    """As of a rank that has ended early; of the others it is one."""
    early = {"facts": {"executable": "/a/python"}}
    known = [{"facts": {"executable": "/a/python", "directory": f"/job{r}"}} for r in range(2)]

    assert [] == [d for d in differences(job(2, r0=known[0], r1=early)) if d.kind == "fact"]
    found = by_key(job(3, r0=known[0], r1=early, r2=known[1]))["directory"]
    assert [("/job0", (0,)), ("/job1", (2,))] == sorted(found.values)
    assert "not set" not in found.sentence


def test_fewer_than_two_ranks_have_nothing_to_differ():
    """Nor have records without content."""
    assert () == differences([])
    assert () == differences(job(1))
    assert "nothing differs" in to_text(differences([RankState(rank=0), RankState(rank=1)]))


def test_hostile_values_are_cleaned_and_clipped():
    """What another process put into its environment cannot steer the terminal or fill it."""
    states = [with_environment(s, NCCL_DEBUG="\x1b[2J" + "x" * 5_000 + str(s.rank)) for s in job()]
    text = to_text(differences(states))

    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 800


@given(jobs)
def test_every_difference_is_one(states):
    """Values are disjoint in ranks, the majority first, and the odd ranks are those outside it."""
    for found in differences(states):
        members = [rank for _, ranks in found.values for rank in ranks]
        assert len(members) == len(set(members))
        assert found.sentence.endswith((".", "own."))
        if len(found.values) > 1:
            sizes = [len(ranks) for _, ranks in found.values]
            assert sizes == sorted(sizes, reverse=True)
            assert set(found.odd) <= set(members) - set(found.values[0][1])


@given(jobs)
def test_nothing_that_must_be_the_same_is_overlooked(states):
    """Any two values of a communication variable are reported as wrong."""
    rows = [s for s in states if s.environment]
    different = len({s.environment.get("NCCL_IB_DISABLE") for s in rows}) > 1
    found = [d for d in differences(states) if d.key == "NCCL_IB_DISABLE" and d.kind == "variable"]

    assert different == bool(found)
    assert all(d.suspicion == "wrong" for d in found)
