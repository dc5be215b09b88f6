"""`dtdebug doctor`: launch commands in all dialects, the rules of gloo and NCCL, judging, forms, hostile peers."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import doctor_lab
import msgspec
import pytest
import yaml

from dtdebug.doctor import render
from dtdebug.doctor.host import bounded_calls, interface_choice, software
from dtdebug.doctor.host import report as host_report
from dtdebug.doctor.judge import forecast, parallel_sizes
from dtdebug.doctor.judge import report as judge_report
from dtdebug.doctor.judge.matrix import Hosts
from dtdebug.doctor.launch import hostfile, read_launch
from dtdebug.doctor.meet import meet, pair_probes, protocol, shared_session
from dtdebug.doctor.meet.hub import _Hub
from dtdebug.doctor.meet.untrusted import sanitize_report
from dtdebug.doctor.report_types import Report
from dtdebug.doctor.types import Arrival, Choice, HostReport, Interface, Launch, Meeting, Name, ReturnRoutes, Try
from dtdebug.errors import UsageError
from dtdebug_taxonomy import __version__
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.knowledge.preflight import load as preflight
from dtdebug_taxonomy.presentation.explain import explain


def read(text, **variables):
    return read_launch.read_launch(text.split(), variables)


@pytest.mark.parametrize(
    ("text", "variables", "expected"),
    [
        (
            "torchrun --nnodes 4 --node-rank 1 --nproc-per-node 8 --master-addr h0 --master-port 1234 t.py --a 1",
            {},
            {
                "launcher": "torchrun",
                "nodes": 4,
                "node": 1,
                "ranks": 32,
                "endpoint": "h0:1234",
                "backend": "static",
                "program": "t.py",
            },
        ),
        (
            "srun torchrun --nnodes=2:4 --rdzv-backend=c10d --rdzv-endpoint=h0:29400 t.py",
            {},
            {"nodes": 4, "least": 2, "backend": "c10d", "endpoint": "h0:29400", "node": None},
        ),
        ("torchrun --standalone --nproc-per-node gpu t.py", {}, {"nodes": 1, "ranks": None, "endpoint": ""}),
        (
            "accelerate launch --num_machines 2 --machine_rank 1 --num_processes 16 --main_process_ip h0 t.py",
            {},
            {
                "launcher": "accelerate launch",
                "nodes": 2,
                "node": 1,
                "per_node": 8,
                "ranks": 16,
                "endpoint": "h0:29500",
            },
        ),
        (
            "mpirun -np 8 --mca btl tcp -x PATH -H a:4,b:4 python -u t.py",
            {},
            {"launcher": "mpirun", "nodes": 2, "per_node": 4, "ranks": 8, "hosts": ("a", "b"), "program": "t.py"},
        ),
        ("horovodrun -np 4 -H a:2,b:2 python t.py", {}, {"launcher": "horovodrun", "nodes": 2, "ranks": 4}),
        (
            "python t.py",
            {"MASTER_ADDR": "h0", "MASTER_PORT": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4", "RANK": "5"},
            {"launcher": "variables", "nodes": 2, "node": 1, "ranks": 8, "endpoint": "h0:1"},
        ),
        (
            "srun python t.py",
            {
                "SLURM_NNODES": "2",
                "SLURM_NTASKS": "8",
                "SLURM_PROCID": "4",
                "SLURM_NODEID": "1",
                "SLURM_JOB_NODELIST": "n[01-02]",
                "MASTER_ADDR": "n01",
            },
            {"nodes": 2, "node": 1, "ranks": 8, "hosts": ("n01", "n02")},
        ),
        ("make train", {}, {"launcher": "", "nodes": 1}),
    ],
)
def test_launch_commands_are_read_in_their_dialects(text, variables, expected):
    """Hosts, ranks, endpoint and program come from the very command; what no launcher knows is said."""
    found = read(text, **variables)
    assert {name: getattr(found, name) for name in expected} == expected
    assert bool(found.problems) == (text == "make train")


def test_of_several_tasks_on_a_host_one_examines_it():
    """srun and mpirun start it once a rank: the further ones end without a word; a launcher in each is examined."""
    variables = {
        "SLURM_NNODES": "2",
        "SLURM_NTASKS": "4",
        "SLURM_PROCID": "1",
        "SLURM_NODEID": "0",
        "MASTER_ADDR": "h0",
    }
    assert read_launch.is_spare(read("python t.py", **variables), variables | {"SLURM_LOCALID": "1"})
    assert not read_launch.is_spare(read("python t.py", **variables), variables | {"SLURM_LOCALID": "0"})
    assert not read_launch.is_spare(read("torchrun --nnodes 2 t.py", **variables), variables | {"SLURM_LOCALID": "1"})
    done = doctor("--", "python", "t.py", **variables, SLURM_LOCALID="1")
    assert (done.returncode, done.stdout) == (0, "")


def test_files_that_a_command_names_are_read_or_refused_by_line(tmp_path):
    """DeepSpeed's hostfile gives hosts and ranks; a wrong line is named, as is a missing file."""
    path = tmp_path / "hostfile"
    path.write_text("# cluster\nworker-1 slots=4\nworker-2 slots=4\n")
    found = read(f"deepspeed --hostfile {path} t.py --deepspeed_config ds.json")
    assert (found.hosts, found.ranks, found.endpoint) == (("worker-1", "worker-2"), 8, "worker-1:29500")
    for line, word in (("worker-1 slots=x", "slots=N"), ("worker-2", "twice"), ("-oProxyCommand=x", "not a host name")):
        path.write_text(f"worker-2 slots=4\n\n{line}\n")
        with pytest.raises(UsageError, match=rf"hostfile:3: .*{word}"):
            hostfile.read_hostfile(path)
    with pytest.raises(UsageError, match="can't be read"):
        read(f"deepspeed --hostfile {tmp_path}/none t.py")
    config = tmp_path / "a.yaml"
    config.write_text("num_machines: 2\nnum_processes: 8\nmachine_rank: 1\nmain_process_ip: h0\nmain_process_port: 7\n")
    found = read(f"accelerate launch --config_file {config} t.py")
    assert (found.nodes, found.node, found.per_node, found.endpoint) == (2, 1, 4, "h0:7")


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n[1-3,7]", ("n1", "n2", "n3", "n7")),
        ("a[08-10]-ib,b", ("a08-ib", "a09-ib", "a10-ib", "b")),
        ("n[1-", ()),
        ("n[1-99999999]", ()),
    ],
)
def test_lists_of_slurm(text, hosts):
    """Ranges keep their zeros; what is written otherwise gives nothing, never something wrong."""
    assert hostfile.slurm(text) == hosts


def test_nccl_takes_interfaces_by_its_manual():
    """Prefixes, `^` and `=`; without the variable ib, then anything but docker, lo and virbr."""
    cards = [
        Interface(name=n, up=True, addresses=(a,))
        for n, a in (
            ("lo", "127.0.0.1/8"),
            ("docker0", "172.17.0.1/16"),
            ("eth0", "10.0.0.1/24"),
            ("ib0", "10.1.0.1/24"),
        )
    ]
    assert interface_choice.nccl(cards, {}).interface == "ib0"
    assert interface_choice.nccl(cards[:3], {}).interface == "eth0"
    assert interface_choice.nccl(cards[:2], {}).interface == "docker0"
    assert interface_choice.nccl(cards, {"NCCL_SOCKET_IFNAME": "^ib,docker,lo"}).interface == "eth0"
    assert interface_choice.nccl(cards, {"NCCL_SOCKET_IFNAME": "=eth"}).error
    assert interface_choice.nccl(cards, {"NCCL_SOCKET_IFNAME": "eth"}).interface == "eth0"


def hosts(*addresses, tries=None, **launched):
    """Hosts that came, each with its gloo address; all reach all unless `tries` says otherwise."""
    every = []
    for i, address in enumerate(addresses):
        seen = HostReport(
            host=f"h{i}",
            boot=f"boot{i}",
            gloo=Choice(address=address, interface="eth0", why="own name"),
            nccl=Choice(address=f"10.0.0.{i + 1}", interface="eth0"),
            own=Name(name=f"h{i}", addresses=(address,)),
            endpoint=Name(name="h0", addresses=("10.0.0.1",)),
            interfaces=(Interface(name="eth0", up=True, addresses=(f"10.0.0.{i + 1}/24",)),),
            launch=Launch(
                launcher="torchrun",
                nodes=len(addresses),
                least=len(addresses),
                node=i,
                per_node=2,
                address="h0",
                port=29500,
                backend="static",
                **launched,
            ),
        )
        every.append(Arrival(look=seen, node=i, address=f"10.0.0.{i + 1}"))
    for i, c in enumerate(every):
        for j, other in enumerate(every):
            for address in {f"10.0.0.{j + 1}", other.look.gloo.address}:
                if i != j and not address.startswith("127."):
                    result = (tries or {}).get((i, j), {})
                    c.tries.append(Try(**{"node": j, "address": address, "milliseconds": 0.2, "large": True, **result}))
    return Hosts(every)


def named(report, severity="fault"):
    return {(f.id, f.hosts) for f in report.findings if f.severity == severity}


def test_of_each_pair_the_larger_address_calls():
    """127.0.1.1 does harm only where others have to call it, and the pairs are named."""
    healthy = [f"10.0.0.{i}" for i in range(1, 5)]
    assert forecast.gloo(hosts(*healthy)).verdict == "connects"
    assert forecast.gloo(hosts("10.0.0.1", "127.0.1.1", "10.0.0.3")).verdict == "connects"
    fails = forecast.gloo(hosts("192.168.0.1", "127.0.1.1", "192.168.0.3"))
    assert (fails.verdict, {(p.caller, p.called, p.why) for p in fails.failing}) == (
        "fails",
        {(0, 1, "itself"), (2, 1, "itself")},
    )
    both = forecast.gloo(hosts("127.0.1.1", "127.0.1.1"))
    assert both.verdict == "fails"
    one_way = {(0, 1): {"result": "timeout"}}
    assert forecast.gloo(hosts("10.0.0.1", "10.0.0.2", tries=one_way)).verdict == "connects"
    assert forecast.gloo(hosts("10.0.0.1", "10.0.0.2", tries={(1, 0): {"result": "timeout"}})).verdict == "fails"
    untried = hosts("10.0.0.1", "10.0.0.2")
    untried[1].tries = []
    assert forecast.gloo(untried).verdict == "unknown"


def test_rows_and_columns_name_the_host_the_pair_or_all():
    """One bad host of four is in half of the pairs: it is found by its own pairs, and others are not named."""
    four = [f"10.0.0.{i}" for i in range(1, 5)]
    bad = {"result": "timeout"}
    of_h3 = {p: bad for i in range(3) for p in ((i, 3), (3, i))}
    assert named(judge_report.together(hosts(*four, tries=of_h3), (), 1)) == {("DR301", ("h3",))}
    pair = {(1, 2): bad, (2, 1): bad}
    assert named(judge_report.together(hosts(*four, tries=pair), (), 1)) == {("DR301", ("h1", "h2"))}
    to_h2 = {(i, 2): bad for i in (0, 1, 3)}
    assert named(judge_report.together(hosts(*four, tries=to_h2), (), 1)) == {("DR302", ("h2",))}
    every = {(i, j): bad for i in range(4) for j in range(4)}
    assert {n for n, _ in named(judge_report.together(hosts(*four, tries=every), (), 1))} == {"DR305"}
    lost = {p: {"large": False, "passes": 1348} for i in range(3) for p in ((i, 3), (3, i))}
    report = judge_report.together(hosts(*four, tries=lost), (), 1)
    assert named(report) == {("DR303", ("h3",))}
    assert report.forecast["gloo"] == "fails"
    absent = judge_report.together(Hosts(hosts(*four)[:3]), (), 1)
    assert absent.forecast["gloo"] == "fails"
    slow = {p: {"milliseconds": 20.5} for i in range(3) for p in ((i, 3), (3, i))}
    assert named(judge_report.together(hosts(*four, tries=slow), (), 1), "warning") == {("DR304", ("h3",))}
    uneven = {p: {"milliseconds": 3.0} for i in range(3) for p in ((i, 3), (3, i))}
    assert not judge_report.together(hosts(*four, tries=uneven), (), 1).findings


def test_a_host_that_drops_packets_for_the_way_they_came_is_named():
    """Two cards in one network, one host with rp_filter 1: it hides what follows; the way back has to be another."""
    three = [f"10.0.0.{100 + i}" for i in range(1, 4)]

    def judged(given="eth1", way="10.0.0.1", strict=True):
        found = hosts(*three, tries={(i, 0): {"result": "timeout"} for i in (1, 2)})
        for i, c in enumerate(found):
            second = Interface(name="eth1", up=True, addresses=(f"{three[i]}/24",), strict=strict and i == 0)
            chosen = Choice(address=three[i], interface="eth1", why="GLOO_SOCKET_IFNAME", given=given)
            c.look = msgspec.structs.replace(c.look, interfaces=(*c.look.interfaces, second), gloo=chosen)
            c.tries = [msgspec.structs.replace(t, source=f"10.0.0.{i + 1}") for t in c.tries]
        found[0].back = ReturnRoutes(dropped=9, ways={f"10.0.0.{i}": way for i in (2, 3)})
        return judge_report.together(found, (), 1)

    report = judged()
    assert named(report) == {("DR119", ("h0",))}
    (found,) = [f for f in report.findings if f.id == "DR119"]
    assert found.pairs == (("h1", "h0"), ("h2", "h0"))
    assert found.fix.commands == ("sysctl -w net/ipv4/conf/eth1/rp_filter=2",)
    assert ("DR118", ("h0", "h1", "h2")) in named(report, "warning")
    assert "9 packets" in found.measured
    for other in (judged(strict=False), judged(way=three[0]), judged(way="")):
        assert "DR119" not in {n for n, _ in named(other)}
    for given in ("", "eth1,eth0"):
        assert not named(judged(given), "warning")


def test_a_pair_that_fails_hides_only_what_follows_for_that_pair():
    """All hosts will take the loopback, and besides one way is shut: both are said."""
    came = hosts(*["127.0.0.1"] * 4, tries={(1, 2): {"result": "timeout"}})
    for c in came:
        c.look = msgspec.structs.replace(
            c.look, gloo=Choice(address="127.0.0.1", interface="lo", why="GLOO_SOCKET_IFNAME")
        )
    said = {f.id for f in judge_report.together(came, (), 1).findings}
    assert {"DR111", "DR302"} <= said


def test_what_differs_is_named_beside_what_the_others_have():
    """Clock, version, variable and device of one host; the fault is what does harm to the backend that will be used."""
    four = hosts(*(f"10.0.0.{i}" for i in range(1, 5)))
    for c in four:
        c.look = msgspec.structs.replace(
            c.look, versions={"torch": "2.13.0", "numpy": "2.0"}, variables={"NCCL_ALGO": "Ring"}
        )
    four[2].look = msgspec.structs.replace(four[2].look, versions={"torch": "2.9.0", "numpy": "2.0"}, variables={})
    four[1].offset = -60.0
    report = judge_report.together(four, (), 1)
    assert named(report) == {("DR401", ("h2",))}
    assert ("DR403", ("h2",)) in named(report, "hint")
    assert ("DR501", ("h1",)) in named(report, "hint")
    for c in four:
        c.look = msgspec.structs.replace(
            c.look,
            devices=("H100",) * 2,
            takes_itself=c.node == 0,
            launch=msgspec.structs.replace(c.look.launch, backend="c10d"),
        )
    four[3].look = msgspec.structs.replace(four[3].look, devices=("H100",))
    report = judge_report.together(four, (), 1)
    assert {("DR501", ("h1",)), ("DR403", ("h2",)), ("DR601", ("h3",))} <= named(report)
    assert report.backend == "nccl"
    assert report.forecast["nccl"] == "connects"


@pytest.mark.parametrize(
    ("arguments", "per_node", "expected"),
    [
        (("--tensor-model-parallel-size", "4", "--pipeline-model-parallel-size", "2"), 8, set()),
        (("--tensor-model-parallel-size", "4", "--pipeline-model-parallel-size", "2"), 6, {"DR702"}),
        (("--tensor-model-parallel-size=4", "--num-attention-heads=30"), 8, {"DR703"}),
        (("model.tensor_model_parallel_size=2", "model.global_batch_size=48", "model.micro_batch_size=4"), 8, set()),
        (
            ("model.tensor_model_parallel_size=2", "model.global_batch_size=50", "model.micro_batch_size=4"),
            8,
            {"DR701"},
        ),
        (("--learning-rate", "3"), 8, set()),
        (("--tensor-model-parallel-size", "3"), None, set()),
    ],
)
def test_sizes_are_held_against_the_ranks_that_are_started(arguments, per_node, expected):
    """Megatron's and Hydra's spelling; without a known number of ranks nothing is said."""
    found, _ = parallel_sizes.judge(Launch(per_node=per_node, nodes=1, arguments=arguments))
    assert {p.id for p in found} == expected


def test_sizes_come_from_configurations_too(tmp_path, monkeypatch):
    """DeepSpeed's JSON and torchtitan's TOML, which the command may override."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds.json").write_text(
        json.dumps({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2})
    )
    of = ("--deepspeed", "ds.json")
    assert not parallel_sizes.judge(Launch(per_node=8, arguments=of))[0]
    wrong = parallel_sizes.judge(Launch(per_node=4, nodes=3, arguments=of))[0]
    assert [p.id for p in wrong] == ["DR701"]
    assert "12 ranks" in wrong[0].text
    (tmp_path / "titan.toml").write_text("[parallelism]\ntensor_parallel_degree = 2\ndata_parallel_shard_degree = -1\n")
    of = ("--job.config_file", "titan.toml")
    assert not parallel_sizes.judge(Launch(per_node=8, arguments=of))[0]
    assert [
        p.id
        for p in parallel_sizes.judge(Launch(per_node=8, arguments=(*of, "--parallelism.tensor_parallel_degree", "3")))[
            0
        ]
    ] == ["DR702"]
    (tmp_path / "ds.json").write_text('{"train_batch_size": "auto"')
    assert not parallel_sizes.judge(Launch(per_node=8, arguments=("--deepspeed", "ds.json")))[0]


def test_local_modules_are_hashed_and_nothing_else(tmp_path):
    """The program, its imports from beside it, and configurations; what does not parse is hashed all the same."""
    (tmp_path / "pkg").mkdir()
    for name, text in (
        ("train.py", "import os, helper\nfrom pkg import part\n"),
        ("helper.py", "def ("),
        ("pkg/__init__.py", ""),
        ("pkg/part.py", "from . import deep"),
        ("pkg/deep.py", ""),
        ("other.py", ""),
        ("c.yaml", "a: 1"),
    ):
        (tmp_path / name).write_text(text)
    found, why = software.hashed_files(str(tmp_path / "train.py"), (f"--config={tmp_path}/c.yaml",))
    assert set(found) == {"train.py", "helper.py", "pkg/__init__.py", "pkg/part.py", "pkg/deep.py", "c.yaml"}
    assert not why
    assert "not there" in software.hashed_files(str(tmp_path / "none.py"), ())[1]


def test_what_hangs_or_fails_is_not_looked_at(monkeypatch):
    """A file system without an answer and a probe that breaks cost their own part alone, and the reason is said."""
    hang = threading.Event()
    monkeypatch.setattr(host_report, "_LIMIT", 0.5)
    monkeypatch.setattr(software, "hashed_files", lambda *_: hang.wait(30))
    monkeypatch.setattr(software, "versions", lambda: 1 / 0)
    seen = host_report.examine_host(Launch(program="t.py"), {})
    hang.set()
    assert "hangs" in seen.unread["code"]
    assert "ZeroDivisionError" in seen.unread["versions"]
    assert seen.interfaces
    report = judge_report.alone(seen, Meeting(result="none"))
    states = {area.id: area.state for area in report.areas}
    assert (states["code"], states["versions"]) == ("unknown", "unknown")


def test_a_folder_of_a_server_that_is_gone_is_named_and_not_read(tmp_path, monkeypatch):
    """A child asks, here one that never answers: the program there is not opened, and no folder is used."""
    (tmp_path / "stat").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "stat").chmod(0o755)
    monkeypatch.setattr(bounded_calls, "FOLDER_LIMIT", 60.0)
    assert bounded_calls.folder_answers(tmp_path / "none")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(bounded_calls, "FOLDER_LIMIT", 0.3)
    monkeypatch.setattr(software, "hashed_files", lambda *_: pytest.fail("it would hang"))
    seen = host_report.examine_host(Launch(program=f"{tmp_path}/t.py"), {})
    assert [p.id for p in seen.problems if "does not answer" in p.text] == ["DR508"]
    assert "does not answer" in seen.unread["code"]
    with pytest.raises(UsageError, match="file server hangs"):
        shared_session.SharedFolder(tmp_path, "token", seen)


def test_peers_without_the_token_and_hostile_ones_get_nothing():
    """A wrong token, noise, silence and a flood leave the answering side as it was; who has the token is answered."""

    async def scene():
        answering = pair_probes.ProbeServer()
        await answering.open(["127.0.0.1", "192.0.2.1"])
        assert len(answering.ports) == 1, "an address that is not ours is left out"
        answering.begin("right", 3)
        ((address, port),) = answering.ports
        assert [t.result for t in await pair_probes.probe([(3, address, port)], "wrong")] == ["other"]
        assert [t.result for t in await pair_probes.probe([(2, address, port)], "right")] == ["other"], (
            "another host than was meant"
        )
        noise = [asyncio.open_connection(address, port) for _ in range(20)]
        for reader, writer in await asyncio.gather(*noise):
            writer.write(os.urandom(5000) + b"\n" * 9)
            assert len(await asyncio.wait_for(reader.read(), 10)) < 200
            writer.close()
        found = await pair_probes.probe([(3, address, port)], "right")
        assert (found[0].result, found[0].large) == ("ok", True)
        answering.close()
        assert [t.result for t in await pair_probes.probe([(3, address, port)], "right")] == ["refused"]

    asyncio.run(scene())


def test_what_a_host_says_of_itself_can_neither_colour_nor_command():
    """Escapes go from its name; an interface that is no name gets into no setting."""
    bad = hosts("127.0.1.1", "127.0.1.1")
    for c in bad:
        card = msgspec.structs.replace(c.look.interfaces[0], name="eth0; rm -rf /")
        c.look = sanitize_report(msgspec.structs.replace(c.look, host="h\x1b[31m1", interfaces=(card,)))
    report = judge_report.together(bad, (), 1)
    text = render.to_text(report) + render.to_export(report, "sh")
    assert "\x1b" not in text
    assert "rm -rf" not in text
    assert named(report) == {("DR102", ("h1#0", "h1#1"))}


def test_messages_that_were_changed_or_are_too_long_are_refused():
    """Each message is bound to its place in the conversation; a line has a greatest length."""

    async def scene():
        heard = []

        async def guest(reader, writer):
            try:
                channel = await protocol.serve(reader, writer, "t")
                heard.append(await channel.receive(5))
                await channel.receive(5)
            except protocol.WireError as error:
                heard.append(error.why)
            writer.close()

        server = await asyncio.start_server(guest, "127.0.0.1", 0, limit=protocol.LINE)
        port = server.sockets[0].getsockname()[1]
        for more in (b"0" * 64 + b" {}\n", b"x" * (protocol.LINE + 10)):
            reader, writer = await protocol.connect("127.0.0.1", port, 5)
            channel = await protocol.call(reader, writer, "t")
            await channel.send({"a": 1}, 5)
            writer.write(more)
            await asyncio.wait_for(reader.read(), 10)
            writer.close()
        server.close()
        return heard

    assert asyncio.run(scene()) == [{"a": 1}, "token", {"a": 1}, "lost"]


def test_hosts_of_another_protocol_are_named_with_both_releases():
    """Where all meet and at the host that came; one that only leaves, or says nonsense, is as one that never came."""
    seen = msgspec.structs.replace(hosts("127.0.0.1", "10.0.0.2")[0].look, version="1.2.3")

    def here(port):
        launch = msgspec.structs.replace(seen.launch, port=port)
        return msgspec.structs.replace(seen, launch=launch, endpoint=Name(name="h0", addresses=("127.0.0.1",)))

    async def refused():
        """A host that comes to one of a later protocol."""

        async def later(reader, writer):
            writer.write(b"dtdebug-doctor 2 " + b"0" * 32 + b"\n")
            heard.append(await reader.readline())
            writer.write(b"dtdebug-doctor 2 7.0\n")
            writer.close()

        heard = []
        server = await asyncio.start_server(later, "127.0.0.1", 0)
        meeting, _ = await meet.come(here(server.sockets[0].getsockname()[1]), "t", 60)
        server.close()
        return heard, meeting

    async def collected(said):
        """Where all meet, of the one that leaves with these words."""

        async def guest():
            reader, writer = await protocol.connect("127.0.0.1", hub._servers[0].sockets[0].getsockname()[1], 30)
            await reader.readline()
            writer.write(said)
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 30)
            writer.close()
            return answer

        hub = _Hub(here(0), "t", heavy=False)
        await hub.open()
        try:
            answer = await guest()  # all that it says is read before its end
            return answer, await hub.run(0.1, judge_report.together)
        finally:
            await hub.close()

    heard, meeting = asyncio.run(refused())
    assert [protocol.GREETING + __version__.encode() + b"\n"] == heard
    assert ("version", "127.0.0.1 has dtdebug 7.0 (protocol 2), h0 1.2.3") == (meeting.result, meeting.words)
    (told,) = [f for f in judge_report.alone(here(1), meeting).findings if f.id == "DR213"]
    assert "7.0 (protocol 2), h0 1.2.3" in told.measured
    answer, report = asyncio.run(collected(b"dtdebug-doctor 2 7.0\n"))
    assert answer == heard[0]
    assert named(report) & {("DR213", ()), ("DR201", ("node 1",))} == {("DR213", ())}
    assert "127.0.0.1: 7.0 (protocol 2); h0: 1.2.3" in {f.measured for f in report.findings}
    for silent in (b"", b"dtdebug-doctor 2 \x1b[31m\n", b"dtdebug-doctor\n"):
        _, report = asyncio.run(collected(silent))
        assert {n for n, _ in named(report)} & {"DR213", "DR201"} == {"DR201"}


def test_the_forms_say_the_same():
    """JUnit parses, Nagios has its own statuses, settings are quoted for the shell, the text names the check."""
    report = judge_report.together(hosts("127.0.1.1", "127.0.1.1", "127.0.1.1"), (), 1)
    assert named(report) == {("DR102", ("h0", "h1", "h2"))}
    assert report.export == {"GLOO_SOCKET_IFNAME": "eth0"}
    tree = ET.fromstring(render.to_junit(report))
    said = {s.get("name"): {c.get("name"): [e.tag for e in c] for c in s} for s in tree}
    assert said["interfaces"] == {f"DR102 h{i}": ["failure"] for i in range(3)}
    assert said["versions"] == {f"versions h{i}": [] for i in range(3)}
    assert said["partition"] == {f"partition h{i}": ["skipped"] for i in range(3)}
    assert (tree.get("tests"), tree.get("failures")) == ("27", "3")
    slow = {p: {"milliseconds": 20.5} for p in ((0, 2), (2, 0), (1, 2), (2, 1))}
    warned = judge_report.together(hosts("10.0.0.1", "10.0.0.2", "10.0.0.3", tries=slow), (), 1)
    cases = [ET.fromstring(render.to_junit(warned, strict=s)).find(".//*[@name='DR304 h2']/*") for s in (False, True)]
    assert [case.tag for case in cases] == ["system-out", "failure"]
    line, status = render.to_nagios(report, 1)
    assert status == 2
    assert line.startswith("DTDEBUG CRITICAL: DR102")
    assert render.to_export(report, "sh").startswith("export GLOO_SOCKET_IFNAME=eth0")
    settings = {"GLOO_SOCKET_IFNAME": "eth0"}
    assert json.loads(render.to_export(report, "json")) == settings
    assert yaml.safe_load(render.to_export(report, "k8s")) == {
        "env": [{"name": n, "value": v} for n, v in settings.items()]
    }
    assert render.to_export(report, "slurm") == "#SBATCH --export=ALL,GLOO_SOCKET_IFNAME=eth0\n"
    odd = msgspec.structs.replace(report, export={"NCCL_SOCKET_IFNAME": "=eth0", "MASTER_ADDR": "a'b $(c)"})
    script = render.to_export(odd, "sh") + 'printf "%s,%s" "$NCCL_SOCKET_IFNAME" "$MASTER_ADDR"'
    done = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout == "=eth0,a'b $(c)"
    assert yaml.safe_load(render.to_export(odd, "k8s"))["env"][1]["value"] == "a'b $(c)"
    text = render.to_text(report)
    assert "export GLOO_SOCKET_IFNAME=eth0   DR102" in text
    assert max(map(len, text.splitlines())) <= 120
    again = msgspec.json.decode(msgspec.json.encode(report), type=Report)
    assert again == report


def test_each_finding_has_a_page_with_a_source():
    """Symptoms and fix patterns exist; `dtdebug explain DR102` shows the page."""
    knowledge = load()
    for known in preflight().values():
        assert known.pattern in knowledge.patterns
        assert all(code in knowledge.symptoms for code in known.symptom)
        assert all(r.url.startswith("https://") for r in known.reference)
        assert set(known.hides) <= set(preflight())
    page = explain(knowledge, "DR102")
    assert "127.0.1.1" in page
    assert "https://" in page


def doctor(*words, **variables):
    return subprocess.run(
        [sys.executable, "-m", "dtdebug", "doctor", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | variables,
        check=False,
    )


def test_one_host_is_examined_without_a_command(tmp_path):
    """All areas appear, what was not looked at is said, nothing is left behind; usage errors end with 2."""
    temporary = tmp_path / "temporary"  # of its own: other tests run beside this one
    temporary.mkdir()
    done = doctor("--format", "json", TMPDIR=str(temporary))
    report = json.loads(done.stdout)
    assert done.returncode == (1 if doctor_lab.ids(report) else 0)
    assert {a["id"] for a in report["areas"]} == {
        "launch",
        "names",
        "interfaces",
        "network",
        "versions",
        "code",
        "hosts",
        "devices",
        "partition",
    }
    assert all(why["why"] for why in report["not_examined"])
    assert [] == list(temporary.iterdir())
    (tmp_path / "hf").write_text("a slots=1\nb slots=\n")
    for words in (
        ["--wait", "0"],
        ["--via", "ssh"],
        ["--read", str(tmp_path / "none")],
        ["--", "deepspeed", "--hostfile", str(tmp_path / "hf"), "t.py"],
    ):
        done = doctor(*words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert done.stderr.startswith("dtdebug: ")
    assert "hf:2: " in done.stderr


def test_a_host_that_finds_nobody_says_why(tmp_path):
    """The endpoint refuses: the reason, a line for --read, status 1, and --read joins it."""
    done = doctor(
        "--wait",
        "1",
        "--",
        "torchrun",
        "--nnodes",
        "2",
        "--node-rank",
        "1",
        "--master-addr",
        "localhost",
        "--master-port",
        "9",
        "t.py",
    )
    assert done.returncode == 1
    assert "DR203" in done.stdout or "DR103" in done.stdout
    log = tmp_path / "job.log"
    log.write_text("".join(f"h1: {line}\n" for line in done.stdout.splitlines()))
    joined = doctor("--read", str(log), "--format", "json")
    assert joined.returncode == 1
    assert json.loads(joined.stdout)["hosts"]


def test_the_meeting_on_one_machine_is_closed_when_it_is_over():
    """Two doctors of one job meet at the port, with the token that both have; then the port is free again."""
    import socket

    with socket.socket() as plug:
        plug.bind(("127.0.0.1", 0))
        port = plug.getsockname()[1]
    command = [
        "--format",
        "json",
        "--",
        "torchrun",
        "--nnodes",
        "2",
        "--master-addr",
        "127.0.0.1",
        "--master-port",
        str(port),
        "--node-rank",
    ]
    jobs = [
        subprocess.Popen(
            [sys.executable, "-m", "dtdebug", "doctor", *command, str(i), "t.py"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"DTDEBUG_DOCTOR_TOKEN": "s"},
        )
        for i in range(2)
    ]
    reports = [json.loads(job.communicate(timeout=60)[0]) for job in jobs]
    assert [sum(h["came"] for h in r["hosts"]) for r in reports] == [2, 2]
    assert reports[0]["findings"] == reports[1]["findings"]
    deadline = time.monotonic() + 5
    with socket.socket() as plug:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        while time.monotonic() < deadline:
            try:
                plug.bind(("", port))
                break
            except OSError:
                time.sleep(0.1)
        else:
            pytest.fail("the port is still taken")
    assert meet.PAUSE < 1


def test_hosts_of_a_file_are_started_over_ssh(tmp_path):
    """The token goes over standard input, never into a command; a host that can't be reached is named."""
    ssh = tmp_path / "ssh"
    ssh.write_text(f"""#!/bin/sh
echo "$@" >> {tmp_path}/said
while [ "$1" != "--" ]; do host=$1; shift; done
[ "$host" = far ] && {{ echo "ssh: Could not resolve hostname far" >&2; exit 255; }}
exec sh -c "$2"
""")
    ssh.chmod(0o755)
    (tmp_path / "hosts").write_text("near\nfar\n")
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ["--hosts", str(tmp_path / "hosts"), "--via", "ssh", "--wait", "2", "--format", "json", "--"]
    done = doctor(
        *words, "torchrun", "--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", "29519", "t.py", PATH=path
    )
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert [h["came"] for h in report["hosts"]] == [True, False]
    assert {"id": "host far", "why": "ssh: Could not resolve hostname far"} in report["not_examined"]
    (told,) = [f for f in report["findings"] if f["id"] == "DR201"]
    assert (told["hosts"], told["text"]) == (["far"], "far did not report: ssh: Could not resolve hostname far")
    commands = (tmp_path / "said").read_text()
    assert "--node 0" in commands
    assert "DTDEBUG_DOCTOR_TOKEN" not in commands
    assert "BatchMode=yes" in commands


def test_ctrl_c_ends_one_host_and_the_others_say_who_is_missing(tmp_path):
    """The host that was interrupted ends with 130; what holds the port lets it go."""
    import signal
    import socket

    with socket.socket() as plug:
        plug.bind(("127.0.0.1", 0))
        port = plug.getsockname()[1]
    command = ["torchrun", "--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", str(port), "--node-rank"]
    begin = [sys.executable, "-m", "dtdebug", "doctor", "--format", "json", "--wait", "20", "--"]
    with subprocess.Popen(
        [*begin, *command, "0", "t.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with socket.socket() as plug:
                if plug.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        job.send_signal(signal.SIGINT)
        out, error = job.communicate(timeout=20)
    assert (job.returncode, out) == (130, "")
    assert "Traceback" not in error
    with socket.socket() as plug:
        assert plug.connect_ex(("127.0.0.1", port)) != 0


def test_a_run_that_doctor_finds_unfit_is_not_started(tmp_path):
    """`run --doctor` says why on standard error and ends with 1; a fit one runs."""
    program = tmp_path / "t.py"
    program.write_text("print('it ran')")
    words = [sys.executable, "-m", "dtdebug", "run", "--doctor", "--folder", str(tmp_path / "run"), "--"]
    variables = os.environ | {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    for more, status, ran in ((["--tensor-model-parallel-size", "3"], 1, False), ([], 0, True)):
        done = subprocess.run(
            [*words, sys.executable, str(program), *more],
            capture_output=True,
            text=True,
            timeout=60,
            env=variables,
            check=False,
        )
        assert (done.returncode, "it ran" in done.stdout) == (status, ran), done.stderr
        assert ("DR702" in done.stderr) is not ran


def test_a_part_whose_fault_follows_from_another_is_not_called_well():
    """A host that did not come is explained by an endpoint that each takes for itself, and the launch is no success."""
    mine = HostReport(
        host="a",
        launch=Launch(launcher="torchrun", nodes=2, least=2, node=0, per_node=1, address="127.0.0.1", port=7),
        endpoint=Name(name="127.0.0.1", addresses=("127.0.0.1",)),
        interfaces=(Interface(name="e", up=True, addresses=("10.0.0.1/24",)),),
    )
    report = judge_report.together([Arrival(look=mine, node=0, address="10.0.0.1")], (), 8.0)
    faults = [f.id for f in report.findings if f.severity == "fault"]
    assert ("DR103" in faults, "DR201" in faults) == (True, False)
    launch_area = next(area for area in report.areas if area.id == "launch")
    assert (launch_area.state, "follows" in launch_area.text) == ("fault", True)
