"""Several hosts: one folder for all and one answer, reports that are joined, and launchers that do not meet."""

import io
import json
import os
import sys
import tarfile
import threading
import time

import msgspec
import pytest
from hosts_lab import Hosts, can_be_made, dtdebug, end, said, torchrun

from dtdebug.cli.main import main
from dtdebug.live.hosts import join_run, presence, rendezvous_verdict
from dtdebug.live.hosts.job_plan import plan, ranks_command
from dtdebug.live.hosts.presence import HostView, Presence
from dtdebug.live.hosts.tcp_sockets import _rows
from dtdebug.live.job import coverage, recent_runs
from dtdebug.live.job.join_reports import JoinError, join
from dtdebug.live.job.observe import LiveRanks, _fresh, merge_views
from dtdebug.live.job.run_job import STOPPED
from dtdebug.live.probe.liveness import Death
from dtdebug.storage.run_archive import UnpackError, unpack
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.hosts import Host, Plan, WaitingLauncher
from dtdebug_taxonomy.model.ranks import Frame, Group, Operation, RankState, Verdict
from dtdebug_taxonomy.presentation.case_json import Case, contract

LIMIT = 150
APART = "12"
"""Seconds after which a job hangs: the hosts of one job start so far apart on a loaded machine, and wait meanwhile."""
PROGRAM = """
import sys, time, torch, torch.distributed as dist
fault = sys.argv[1]
dist.init_process_group("gloo")
rank, weights = dist.get_rank(), torch.ones(3)

def validate():
    while True:
        time.sleep(1)

def step(number):
    if rank == 1 and number == 9:
        if fault == "raises":
            raise KeyError("label of image 40")
        if fault == "hangs":
            validate()
    dist.all_reduce(weights)

for number in range(30):
    step(number)
    time.sleep(0.02)
dist.destroy_process_group()
"""


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    for name in ("DTDEBUG_RUN", "SLURM_NNODES", "WORLD_SIZE", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def lab():
    """Three hosts."""
    if why := can_be_made():
        pytest.skip(why)
    with Hosts(3) as made:
        yield made


@pytest.fixture
def script(tmp_path):
    """The program of all jobs."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def together(jobs):
    """What the jobs printed, each read at once, and their statuses."""
    texts = [""] * len(jobs)

    def take(index):
        texts[index] = said(jobs[index], LIMIT)

    threads = [threading.Thread(target=take, args=(index,)) for index in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT + 10)
    return texts, [job.returncode for job in jobs]


@pytest.mark.ranks
@pytest.mark.parametrize(("fault", "kind", "line"), [("raises", "dead", 14), ("hangs", "not_arrived", 9)])
def test_one_host_reports_for_all_that_share_a_folder(lab, script, tmp_path, fault, kind, line):
    """One verdict, printed once, with the rank of another host; the other hosts say who reports."""
    folder = tmp_path / "shared"
    options = ["--folder", folder, "--hang-after", APART, *(["--stop-on-not-understood"] if fault == "hangs" else [])]
    jobs = [lab.start(i, *dtdebug(*options), *torchrun(script, i, 2, 29731), fault) for i in range(2)]
    texts, statuses = together(jobs)

    assert all(statuses), texts
    verdicts = [text.count(f"rank 1  program.py:{line}") for text in texts]
    assert sorted(verdicts) == [0, 1], "\n=====\n".join(texts)
    assert "reports: " in texts[verdicts.index(0)]
    found = msgspec.json.decode((folder / "verdict.json").read_bytes(), type=Case)
    assert (found.verdict.kind, found.verdict.culprits, found.coverage.hosts) == (kind, (1,), 2)
    assert {(site.rank, site.line) for site in found.verdict.sites} >= {(1, line)}
    again = lab.start(0, *dtdebug("--folder", folder), *torchrun(script, 0, 2, 29731), "no")
    assert "name a new folder" in said(again, LIMIT)
    assert again.returncode == 2


@pytest.mark.ranks
def test_a_healthy_job_of_two_hosts_says_nothing(lab, script, tmp_path):
    """Output and status are the job's: torch's own lines may name a folder called dtdebug."""
    options = ["--folder", tmp_path / "shared", "--hang-after", "30"]
    jobs = [lab.start(i, *dtdebug(*options), *torchrun(script, i, 2, 29732, static=True), "no") for i in range(2)]
    texts, statuses = together(jobs)

    ours = [text for text in texts if "dtdebug" in text.replace(sys.prefix, "")]
    assert (statuses, ours) == ([0, 0], []), texts


@pytest.mark.ranks
def test_hosts_without_a_folder_in_common_accuse_nobody_elsewhere_and_are_joined(lab, script, tmp_path, capsys):
    """Each names what it can't know; from both reports the rank is found."""
    folders = [tmp_path / "first", tmp_path / "second"]
    jobs = [
        lab.start(
            i, *dtdebug("--folder", folders[i], "--hang-after", APART), *torchrun(script, i, 2, 29733),
            "hangs",
        )
        for i in range(2)
    ]  # fmt: skip
    until = time.monotonic() + LIMIT
    while not all((folder / "verdict.json").exists() for folder in folders) and time.monotonic() < until:
        time.sleep(0.2)
    for job in jobs:
        end(job)
    lab.clear()
    alone = json.loads((folders[0] / "verdict.json").read_text())["verdict"]

    assert (alone["kind"], alone["culprits"], alone["waiting"]) == ("not_understood", [], [0])
    assert main(["join", *map(str, folders), "--format", "json"]) == 1
    joined = json.loads(capsys.readouterr().out)
    assert (joined["verdict"]["kind"], joined["verdict"]["culprits"]) == ("not_arrived", [1])
    assert joined["verdict"]["where"]["function"] == "validate"
    assert (joined["coverage"]["hosts"], joined["coverage"]["unread"]) == (2, [])


@pytest.mark.ranks
def test_launchers_that_do_not_meet_are_reported_within_the_limit(lab, script, tmp_path):
    """Who has come and who has not: here node 2 looks at another port."""
    options = ["--folder", tmp_path / "shared", "--hang-after", APART, "--stop-on-hang"]
    jobs = [
        lab.start(i, *dtdebug(*options), *torchrun(script, i, 3, 29735 if i == 2 else 29734, static=True), "no")
        for i in range(3)
    ]
    texts, statuses = together(jobs)

    assert statuses == [124] * 3, texts
    assert sum("rendezvous does not complete" in text for text in texts) == 1
    found = msgspec.json.decode((tmp_path / "shared" / "verdict.json").read_bytes(), type=Case).verdict
    assert (found.kind, found.culprits) == ("not_arrived", (2,))
    assert "host h2 (node 2)" in found.summary
    assert "h0:29735" in found.summary


COMMANDS = [
    ("torchrun --nnodes 4 --node-rank=2 --nproc-per-node 8 --master-addr n0 --master-port 1234 t.py --nnodes 9",
     Plan(least=4, most=4, node=2, per_node=8, address="n0", port=1234, backend="static"), ("t.py", "--nnodes", "9")),
    (("python -m torch.distributed.run --nnodes=2:4 --nproc_per_node=gpu --rdzv_backend=c10d "
      "--rdzv_endpoint=[fd00::1]:99 --rdzv_id 7 -m pkg.train"),
     Plan(least=2, most=4, per_node=None, address="fd00::1", port=99, backend="c10d", run_id="7"),
     ("-m", "pkg.train")),
    ("accelerate launch --multi_gpu --num_machines 3 --machine_rank 1 --main_process_ip n0 --main_process_port 5 t.py",
     Plan(least=3, most=3, node=1, address="n0", port=5, backend="static"), ("t.py",)),
    ("torchrun --standalone --nproc-per-node 2 t.py", Plan(backend="c10d"), ("t.py",)),
    ("python t.py", Plan(), ("python", "t.py")),
    ("torchrun --nnodes", Plan(address="127.0.0.1", port=29500, per_node=1, backend="static"), ()),
]  # fmt: skip


@pytest.mark.parametrize(("command", "expected", "rest"), COMMANDS)
def test_a_command_says_how_many_hosts_there_are_and_where_they_meet(command, expected, rest):
    """Of torchrun and accelerate, in both spellings; the options of the program are its own."""
    assert plan(command.split(), {}) == expected
    assert ranks_command(command.split()) == rest


def test_variables_speak_where_the_command_is_silent():
    """In a script, below srun, and with torchrun's own variables."""
    assert plan(["bash", "-c", "torchrun --nnodes 2 t.py"], {}).most == 2
    assert plan(["python", "t.py"], {"SLURM_NNODES": "3", "SLURM_NODEID": "2"}) == Plan(least=3, most=3, node=2)
    assert plan(["python", "t.py"], {"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}).most == 2
    assert plan(["torchrun", "t.py"], {"PET_NNODES": "5"}).most == 5


def waiting(name, node=None, port=1, **meeting):
    planned = Plan(least=3, most=3, node=node, per_node=2, address="h0", port=port, backend="static")
    address = f"10.0.0.{int(name[1:]) + 1}"
    return Host(name=name, place=name, plan=planned, addresses=(address,), meeting=WaitingLauncher(pid=7, **meeting))


MEETINGS = [
    ([waiting("h0", 0, listens=True, peers=("10.0.0.2",)), waiting("h1", 1, connected=True)],
     "not_arrived", (4, 5), "node 2 has not"),
    ([waiting("h0", 0, listens=True, peers=("10.0.0.2",))], "not_arrived", (), "1 of 3 hosts has not"),
    ([waiting("h1", 1, connected=True)], "not_understood", (), "is known on h0 alone"),
    ([waiting("h1", 1, trouble="nothing listens at h0:1 (connection refused)")], "not_arrived", (), "nothing listens"),
    ([waiting("h0", 0, listens=True), waiting("h1", 1, connected=True),
      waiting("h2", 2, trouble="the name h0 does not resolve there")], "not_arrived", (4, 5), "can't get to h0"),
    ([waiting("h0", 0, listens=True), waiting("h1", 1, connected=True), waiting("h2", 1, connected=True)],
     "not_arrived", (2, 3), "as node 1"),
    ([waiting("h0", 0, holder="process 9 (python)", local=True), waiting("h1", 1, trouble="x")],
     "not_arrived", (0, 1), "held by process 9"),
    ([waiting("h0", 0, listens=True), waiting("h1", 1, connected=True), waiting("h2", 2, connected=True)],
     "not_understood", (), "all 3 hosts have come"),
]  # fmt: skip


@pytest.mark.parametrize(("hosts", "kind", "ranks", "words"), MEETINGS)
def test_who_has_come_to_a_rendezvous_is_told_from_who_has_not(hosts, kind, ranks, words):
    """By what the hosts themselves show; ranks are named where each host starts as many."""
    found = rendezvous_verdict.rendezvous_verdict(hosts)

    assert (found.kind, tuple(sorted(set(found.culprits)))) == (kind, ranks)
    assert words in found.summary
    assert found.evidence == tuple(dict.fromkeys(claim.text for claim in found.claims))


def state(rank, host, world=4, **more):
    return RankState(rank=rank, world_size=world, local_world_size=2, host=host, pid=100 + rank, alive=True, **more)


def test_nothing_is_said_of_ranks_of_which_nothing_was_read():
    """A verdict on ranks of other hosts becomes what was seen here; one on a rank of this host stays."""
    pending = Operation(op="all_reduce", seq=3)
    here = [state(0, "a", pending=pending), state(1, "a", pending=pending)]
    missing = coverage.unread(here, [])
    found = coverage.limit_verdict(Verdict(kind="dead", culprits=(2, 3), waiting=(0, 1)), here, missing)
    own = Verdict(kind="not_arrived", culprits=(1,))

    assert missing == (2, 3)
    assert (found.kind, found.culprits, found.waiting) == ("not_understood", (), (0, 1))
    assert "ranks 2-3 are on other hosts" in found.summary
    assert coverage.limit_verdict(own, here, missing) is own


@pytest.mark.parametrize(
    ("end", "said"),
    [({"signal": "SIGKILL"}, "Rank 1 was ended by SIGKILL"), ({"exit_code": 3}, "Rank 1 ended with exit status 3")],
)
def test_how_a_rank_has_ended_is_said_though_other_hosts_were_not_read(end, said):
    """The same sentence as where all were read."""
    here = [state(0, "a", pending=Operation(op="all_reduce", seq=3)), state(1, "a", **end)]
    here[1] = msgspec.structs.replace(here[1], alive=False)
    found = coverage.limit_verdict(Verdict(kind="dead", culprits=(2,)), here, (2, 3))

    assert found.summary == f"{said}; ranks 2-3 are on other hosts, of which nothing was read."


def test_ranks_of_one_host_are_not_looked_for_elsewhere():
    """A rank that left no record of a job of one host is no rank of another host."""
    alone = RankState(rank=0, world_size=2, local_world_size=2, host="a", pid=1, alive=True)

    assert coverage.unread([alone], []) == ()


def test_processes_of_two_hosts_with_one_number_are_two():
    """The end of the one is not that of the other, and each host knows its own best."""
    mine, theirs = state(0, "a"), msgspec.structs.replace(state(1, "b"), pid=100)
    ended = msgspec.structs.replace(theirs, alive=False, exit_code=3)
    pool = merge_views(
        LiveRanks(states=(mine, theirs)),
        [],
        (),
        [HostView(states=(ended,), deaths=(Death(pid=100, time=1.0, host="b"),))],
    )

    assert [(s.rank, s.alive, s.exit_code) for s in pool.look.states] == [(0, True, None), (1, False, 3)]
    assert [death.of(s) for death in pool.deaths for s in (mine, theirs)] == [False, True]


def test_an_old_record_of_another_host_does_not_say_where_the_rank_is():
    """It did not answer: it may have left that place long ago; an answer does say it."""
    stack = (Frame("/job/t.py", 3, "load"),)
    silent, heard = (
        state(rank, "far", stack=stack, roads={"files": said_}) for rank, said_ in enumerate(("no record newer", "ok"))
    )

    assert [s.stack for s in _fresh([silent, heard])] == [(), stack]


COMMAND = ["torchrun", "--nnodes", "2", "--node-rank", "0", "t.py"]


def another(folder, name, seconds=0.0, **more):
    """The file of another host, so old."""
    host = Host(name=name, command=tuple(COMMAND), plan=Plan(least=2, most=2, node=1), **more)
    path = folder.hosts / f"{name}-1.json"
    path.write_bytes(msgspec.json.encode(host))
    os.utime(path, (time.time() - seconds,) * 2)


def test_a_folder_of_the_same_job_is_joined_and_any_other_is_refused(tmp_path):
    """By its program and its age, whatever port each host was given."""
    path = tmp_path / "run"
    first = recent_runs.take(path, COMMAND)
    (first.hosts / f"{presence.own_file_name()}.json").unlink()
    another(first, "far")
    other = ["torchrun", "--nnodes", "2", "--node-rank", "0", "--master-port", "7", "t.py"]

    assert first.output.name == "output.log"
    assert join_run.refusal(path, other) == ""
    assert recent_runs.take(path, other).output.parent.name == "hosts"
    assert "another job" in join_run.refusal(path, ["torchrun", "other.py"])
    for file in first.hosts.glob("*.json"):
        file.unlink()
    another(first, "far", 1000.0)
    assert "has ended" in join_run.refusal(path, COMMAND)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    assert "not an empty folder" in join_run.refusal(tmp_path / "mine", COMMAND)


@pytest.mark.parametrize("passing", [".dtdebug-8wq2k1zz", ".token.a8x0_b1c", ".run.json.k1k1k1k1"])
def test_a_folder_that_another_host_enters_at_this_moment_is_no_strangers(tmp_path, passing):
    (tmp_path / passing).mkdir()
    assert not join_run.refusal(tmp_path, COMMAND)


def test_a_host_that_enters_between_two_looks_is_seen(tmp_path, monkeypatch):
    join_run.enter(tmp_path, COMMAND)
    looks, load = [], RunFolder.load_run
    monkeypatch.setattr(RunFolder, "load_run", lambda folder: load(folder) if looks else looks.append(folder))
    monkeypatch.setattr(join_run.socket, "gethostname", lambda: "node-2")
    assert not join_run.refusal(tmp_path, COMMAND)


def test_the_one_that_reports_is_replaced_when_it_has_gone(tmp_path):
    """Never two while the first lives; another one if it ends without a word."""
    folder = recent_runs.take(tmp_path / "run", COMMAND)
    here = Presence(folder, COMMAND)
    another(folder, "far", reports=True)
    (folder.hosts / "reporter-1").write_text("far-1")

    assert here.reporter() == "far"
    another(folder, "far", finished=5.0, status=0)
    assert here.reporter() == ""
    assert here.own.reports
    assert here.reporter() == ""


STOPS_ELSEWHERE = """
import os, pathlib, sys
files = pathlib.Path(os.environ["DTDEBUG_RUN"], "hosts")
(files / "far-1.json").write_text('{"name": "far", "stopped": true, "reports": true}')
(files / "reporter-1").write_text("far-1")
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("options", "ended", "status"),
    [(["--stop-on-hang"], 1, STOPPED), ([], 1, 1), (["--stop-on-hang"], 0, 0)],
)
def test_a_job_that_ends_because_another_host_stops_it_was_stopped(tmp_path, capfd, options, ended, status):
    """Its launcher fails of the lost connection; it has that status where nobody asked for an end, or it succeeds."""
    folder = tmp_path / "run"
    command = [sys.executable, "-c", STOPS_ELSEWHERE, str(ended)]

    assert main(["run", "--folder", str(folder), *options, "--", *command]) == status
    assert capfd.readouterr().err == (f"dtdebug: host far reports: {folder}\n" if ended else "")


def test_sockets_are_read_in_both_families():
    """Addresses of IPv4 within IPv6 are those of IPv4."""
    head = "  sl  local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode\n"
    rest = "00000000:00000000 00:00000000 00000000 0 0 26290 1"
    four = f"0: 0114D60A:7347 0214D60A:E106 01 {rest}\n"
    six = f"1: 0000000000000000FFFF00000114D60A:7347 00000000000000000000000000000000:0000 0A {rest}\nbroken\n"
    found = list(_rows(head + four + six))

    assert [(s.address, s.port, s.far, s.state) for s in found] == [
        ("10.214.20.1", 29511, "10.214.20.2", "connected"), ("10.214.20.1", 29511, "::", "listening")]  # fmt: skip


def archive(path, *members):
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            if data is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            else:
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data or b""))
    return path


def test_an_archive_gives_files_of_a_run_only(tmp_path):
    """No link, no way out of the folder, no file of another name."""
    bad = [("run/../../out.json", b"1"), ("/run.json", b"1"), ("run/ranks/x.sh", b"1"), ("run/ranks/l.json", None),
           ("run/ranks/a/b.json", b"1"), ("run/.hidden", b"1")]  # fmt: skip
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(UnpackError, match="holds no files of a run"):
        unpack(archive(tmp_path / "bad.tar.gz", *bad), target)
    unpack(archive(tmp_path / "good.tar.gz", *bad, ("run/ranks/1.json", b"{}")), target)

    assert [str(p.relative_to(target)) for p in target.rglob("*") if p.is_file()] == ["ranks/1.json"]
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.json", b"{"), ("a.json", b"[1]"), ("a.json", b'{"verdict": {"kind": "odd"}}'), ("a.json", b""),
     ("a.tar.gz", b"\x1f\x8bnothing"), ("a.json", b'{"verdict": {"kind": "none"}, "ranks": [{"rank": "x"}]}')],
)  # fmt: skip
def test_what_is_no_report_is_one_line(tmp_path, capsys, name, data):
    """Status 2, the file and the reason."""
    path = tmp_path / name
    path.write_bytes(data)

    assert main(["join", str(path)]) == 2
    said_ = capsys.readouterr().err
    assert said_.startswith(f"dtdebug: join: {path}: ")
    assert said_.count("\n") == 1


def report(rank, host, world=2, **more):
    frames = (Frame(f"/job/{host}.py", 5, "train"),)
    group = Group(name="0", desc="default_pg", ranks=(0, 1), backend="gloo", enqueued=4 - rank, completed=3)
    own = RankState(
        rank=rank, world_size=world, local_world_size=1, host=host, pid=50, alive=True, initialized=True,
        groups=(group,), stack=frames, **more,
    )  # fmt: skip
    unseen = RankState(rank=1 - rank, world_size=None, alive=None, roads={"files": "nothing"})
    return Case(
        verdict=Verdict(kind="not_understood"), ranks=(own, unseen), progress={rank: "stuck", 1 - rank: "unknown"}
    )


def test_reports_in_json_are_joined_by_their_states(tmp_path):
    """Both forms, of hosts whose ranks have one process id."""
    first = report(0, "a", pending=Operation(op="all_reduce", group="0", seq=4))
    (tmp_path / "a.json").write_bytes(msgspec.json.encode(contract(first)))
    (tmp_path / "b.json").write_bytes(msgspec.json.encode(report(1, "b")))
    found = join([tmp_path / "a.json", tmp_path / "b.json"])

    assert (found.verdict.kind, found.verdict.culprits, found.verdict.waiting) == ("not_arrived", (1,), (0,))
    assert {h.name for h in found.hosts} == {"a", "b"}
    (tmp_path / "c.json").write_bytes(msgspec.json.encode(report(1, "c", world=8)))
    with pytest.raises(JoinError, match="8 ranks"):
        join([tmp_path / "a.json", tmp_path / "c.json"])


def test_an_archive_of_a_run_is_joined(tmp_path):
    """What `dtdebug report RUN` wrote."""
    from dtdebug.live.job.report import archive as pack
    from dtdebug.live.job.report import survey

    paths = []
    for rank, host in enumerate("ab"):
        folder = RunFolder.make(tmp_path / host)
        found = report(rank, host, **({"pending": Operation(op="all_reduce", group="0", seq=4)} if not rank else {}))
        folder.save_record(found.ranks[0])
        folder.verdict.write_bytes(msgspec.json.encode(found))
        paths.append(pack(folder, survey(folder, dumps=False)[0], tmp_path / f"{host}.tar.gz"))

    assert join(paths).verdict.culprits == (1,)
