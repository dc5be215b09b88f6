"""A log's lines in every mix of prefixes: who printed them, and the same failure found behind all of them."""

import json

import pytest

from dtdebug_taxonomy.logs import event_reader, lines, prefixes
from dtdebug_taxonomy.model.claims import texts
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.verdicts import from_log

SITE = "/opt/env/lib/python3.11/site-packages"
OWN = [
    "Traceback (most recent call last):",
    '  File "/job/train.py", line 41, in <module>',
    "    main()",
    '  File "/job/train.py", line 17, in step',
    '    raise TimeoutError("socket of the peer timed out")',
    "TimeoutError: socket of the peer timed out",
]
ECHO = [
    *OWN[:3],
    '  File "/job/train.py", line 19, in step',
    "    dist.all_reduce(t)",
    f'  File "{SITE}/torch/distributed/distributed_c10d.py", line 3120, in all_reduce',
    "    work.wait()",
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:2",
]
NAMING = {  # each names the rank
    "torch": "[rank{r}]: ",
    "tee": "[default{r}]:[rank{r}]: ",
    "srun": "{r}: ",
    "srun, torch": "{r}: [rank{r}]: ",
    "padded srun": "  {r}: ",
    "mpirun": "[1,{r}]<stderr>:",
    "mpirun, new": "[prterun-head-12@1,{r}]<stderr>: ",
    "horovod": "[{r}]<stderr>:",
    "ray": "(RayTrainWorker pid=1{r}, ip=10.0.0.1, rank={r}) ",
    "srun, tee, torch": "{r}: [default{r}]:[rank{r}]: ",
    "own word": "worker rank={r} | ",
    "own number": "<{r}> ",
    "file": "logs/rank_{r}.log:",
}
AROUND = {  # each may stand before any of those
    "none": "",
    "iso": "2026-11-22T03:36:40.1234567Z ",
    "iso, tab": "2026-11-22T03:36:40.123-06:00\t",
    "iso, blank": "2026-11-22 03:36:40,123 ",
    "syslog": "Nov 22 03:36:40 ",
    "journald": "Nov 22 03:36:40 node-3 torchrun[812]: ",
    "clock": "[03:36:40] ",
    "logging": "2026-11-22 03:36:40,123 - ERROR - launcher - ",
    "hydra": "[2026-11-22 03:36:40,123][__main__][ERROR] - ",
    "kubectl": "[pod/train-worker-0/pytorch] ",
    "stern": "train-worker-x7f9k pytorch ",
    "compose": "train-1  | ",
    "pdsh": "node7: ",
    "cri": "2026-11-22T03:36:40.123456789Z stderr F ",
    "colour": "\x1b[36mtrain-1 |\x1b[0m ",
}


def log(*ranks):
    """Lines of ranks among each other: (rank, line)."""
    rows = [(rank, line) for rank in range(4) for line in ("start", f"step {rank} loss 0.5")]
    longest = max(len(text) for _, text in ranks)
    return rows + [(rank, text[n]) for n in range(longest) for rank, text in ranks if n < len(text)]


FAILURE = log((3, OWN), (0, ECHO), (1, ECHO), (2, ECHO))


def verdict(text):
    """The verdict of a text."""
    return from_log.verdict_of_log(Snapshot(output=text))


def is_found(found):
    """Rank, class, file and line are all right."""
    place = next((s for s in found.sites if s.rank == 3), None) if found else None
    said = found.claims[0] if found else None
    return found is not None and (found.kind, found.culprits, place.file, place.line, said.words, found.waiting) == (
        "dead", (3,), "/job/train.py", 17, "TimeoutError: socket of the peer timed out", (0, 1, 2),
    )  # fmt: skip


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("naming", NAMING)
def test_the_rank_that_failed_is_found_behind_every_mix_of_prefixes(naming, around):
    """Ranks print at the same time; the words of the own error are those of a lost connection."""
    text = "\n".join(AROUND[around] + NAMING[naming].format(r=rank) + line for rank, line in FAILURE)

    assert is_found(verdict(text))


@pytest.mark.parametrize("form", ["docker", "structured", "loki", "records", "cri", "logfmt", "pods"])
def test_the_rank_that_failed_is_found_in_json(form):
    """Lines as docker, a logger, Loki and a collector write them; some have a prefix, or hold a traceback."""
    rows = [(rank, f"[rank{rank}]: {line}") for rank, line in FAILURE]
    if form == "docker":
        text = "\n".join(json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "t"}) for _, line in rows)
    elif form == "structured":
        text = "\n".join(json.dumps({"level": "error", "rank": rank, "message": line}) for rank, line in FAILURE)
    elif form in ("cri", "pods"):
        before = "2026-11-22T03:36:40.123456789Z stderr F " if form == "cri" else "llm-worker-0 trainer "
        text = "\n".join(before + json.dumps({"log": line, "stream": "stderr"}) for _, line in rows)
    elif form == "logfmt":
        text = "\n".join(f"ts=2026-11-22T03:36:40Z level=info msg={json.dumps(line)}" for _, line in rows)
    elif form == "loki":
        text = json.dumps({"data": {"result": [{"stream": {"pod": "a"}, "values": [["1", line] for _, line in rows]}]}})
    else:
        whole = [(3, OWN), (0, ECHO), (1, ECHO), (2, ECHO)]
        text = "\n".join(json.dumps({"rank": rank, "msg": "failed", "exc_info": "\n".join(t)}) for rank, t in whole)

    assert is_found(verdict(text))


def test_what_a_record_says_goes_before_what_stands_around_it():
    """Also a number that is 0."""
    (line,) = read('node-2: {"log": "[default0]:[rank4]: lost", "pid": 7}')

    assert ("lost", 4, 0) == (line.body, line.rank, line.local)


def test_a_progress_bar_before_a_line_is_none_of_it():
    """A bar comes before the text in the same line."""
    text = "\n".join(f"\r 10%|#   |\r 20%|##  |\r[rank{rank}]: {line}" for rank, line in FAILURE)

    assert is_found(verdict(text))


def read(*printed):
    """The lines of an output."""
    return lines.split_lines("\n".join(printed))


def test_lines_that_differ_in_digits_only_keep_what_each_says():
    """Where the parts of a prefix stand is worked out once for all of them."""
    printed = read(*(f"2020-07-11 06:43:0{n} 10.164.0.{n} [{n}] step {n}" for n in range(1, 4)))

    assert [(f"step {n}", n, f"10.164.0.{n}", f"2020-07-11 06:43:0{n}") for n in range(1, 4)] == [
        (line.body, line.rank, line.host, line.time) for line in printed
    ]


def test_a_local_rank_is_no_rank_of_the_job():
    """Two nodes have a local rank 1 each, and one node alone may be any of several."""
    two = read("node1: [default1]:[rank1]: a", "node2: [default1]:[rank9]: b", "node2: [default1]:c")
    second = read("[default1]:[rank9]: a", "[default1]:b", "[default0]:c")
    told = read("nnodes: 2", "[default1]:a")

    assert [(1, 9, 9), (9, 9, None), (None, None)] == [
        tuple(line.rank for line in two), tuple(line.rank for line in second), tuple(line.rank for line in told),
    ]  # fmt: skip
    assert 1 == told[1].local


def test_a_local_rank_is_the_rank_where_there_is_one_node():
    """Nothing contradicts it, or torchrun's table says which it is."""
    table = "  rank      : 5 (local_rank: 1)"

    assert [0, 1] == [line.rank for line in read("[default0]:a", "[default1]:b")]
    assert 5 == read("[default1]:a", table)[0].rank


def test_a_task_that_starts_several_ranks_is_a_node():
    """`srun -l` numbers its tasks; below torchrun they are nodes."""
    found = read("1: [rank8]: a", "1: b", "0: [rank0]: c")

    assert [(8, "1"), (None, "1"), (0, "0")] == [(line.rank, line.node) for line in found]


def test_a_tag_around_torchrun_is_a_node():
    """mpirun starts torchrun once on each host: its tag does not name the rank."""
    found = read(
        "[1,0]<stdout>:step 1", "[1,0]<stdout>:  File torch/distributed/run.py", "gpu07: [rank9]: a", "gpu07: b"
    )

    assert [None, None, 9, None] == [line.rank for line in found]
    assert [None, "gpu07"] == [found[3].local, found[3].host]


def test_files_of_log_dir_are_told_apart():
    """`tail` names the file above its lines; the folder's number is the local rank."""
    found = read("==> out/x/attempt_0/0/stderr.log <==", "a", "==> out/x/attempt_0/1/stderr.log <==", "b")

    assert [(0, "a"), (1, "b")] == [(line.local, line.body) for line in found if len(line.body) == 1]


def test_ranks_of_ray_workers_are_learnt_from_what_ray_says():
    """The prefix names a process; another line tells its rank."""
    said = "(RayTrainWorker pid=71, ip=10.0.0.2) Setting up process group for: env:// [rank=2, world_size=4]"

    assert [2, 2] == [line.rank for line in read(said, "(RayTrainWorker pid=71, ip=10.0.0.2) step 1")]


def test_what_a_watchdog_logs_within_a_traceback_does_not_end_it():
    """Its thread prints below the same prefix; only what is not logged, or is called an error, may be the last line."""
    rows = [f"[rank1]: {line}" for line in OWN]
    rows[2:2] = ["[rank1]:[E1130 10:22:33.123456789 ProcessGroupNCCL.cpp:607] flushed"]

    (raised,) = event_reader.find_events(read(*rows)).raised
    assert (raised.text, raised.frames[-1].line) == (OWN[-1], 17)


def test_a_pasted_log_may_be_indented():
    """As a block of code in a page is."""
    assert [(1, OWN[0])] == [(line.rank, line.body) for line in read(f"    [rank1]: {OWN[0]}")]


@pytest.mark.parametrize(
    "text", ["ValueError: bad", "loss: 0.3", "Epoch 3: 10%|#  |", "12:30 done", "a b c", "x | y", "rank 3 is fine", ""]
)
def test_plain_lines_have_no_prefix(text):
    """What a program prints itself stays."""
    assert text == read(text, "other")[0].body


@pytest.mark.parametrize(
    "bad", ["\x00", "[" * 5_000, "{" * 5_000, '{"log": 3}', '{"log": "a", "x": ' + "[" * 900, "(pid="]
)
def test_any_line_is_read(bad):
    """A log may hold anything; every line is kept."""
    assert 2 == len(lines.split_lines(f"{bad}\nb"))
    assert (
        event_reader.find_events(lines.split_lines(f"Traceback (most recent call last):\n{bad}\n  File {bad}"))
        is not None
    )


def test_every_claim_cites_the_line_that_says_it():
    """The line is where the output has these words, and sentences are made of claims alone."""
    text = "\n".join(f"[rank{rank}]: {line}" for rank, line in FAILURE)
    found = verdict(text)

    for claim in found.claims:
        assert claim.record.words[:60] in text.split("\n")[claim.record.line - 1]
        assert claim.record.rank in claim.ranks
    assert found.evidence == texts(found.claims)


SAID = [
    "loading shard 3",
    "step 20 loss 0.5",
    "  warnings.warn(",
    "  what():  CUDA error: an illegal memory access",
    "saved",
]
ALONE = {  # no traceback shows what is a prefix: the word does, or numbers before nearly all lines
    "lightning": "[rank: {r}] ",
    "composer": "2024-08-30 11:06:12,920: rank{r}[208{r}][MainThread]: INFO: ",
    "replica": "rank-{r}  | ",
    "launcher's stream": "giant.cn-d004 [stderr] [rank{r}]: ",
    "logger's name": "ERROR:rank{r}:",
    "logger's fields": "[2024-05-01 12:13:14,123] [ERROR] [train:39] [PID:40{r}] [RANK:{r}] ",
    "among others": "rank {r} of world_size 8, local rank {n} on host gpu{h}: ",
    "of a size": "[rank {r}/8] ",
    "number": "[{r}] ",
    "number behind an address": "2021-06-11 00:34:33 10.164.0.{r} [{r}] ",
    "number behind a host": "x3006c0s13b1n0.hsn {r}: ",
    "container": "[2024-03-15T16:29:14.063351Z] 5c902731 [rank={r}] || ",
    "colour": "#033[34m[1,mpirank:{r},algo-1]<stderr>:",
    "number of": "[{r}/6] ",
    "number of, in words": "({r} of 6) ",
    "of the world": "rank={r}/world=6 ",
    "trainer": "[trainer-{r}|{r}]: ",
    "rank and local": "[r{r}/l{n}] ",
    "letter": "R{r}| ",
    "three numbers": "[R{r} L{n} N{h}] ",
    "host and number": "[gpu-node{h}:{r}] ",
    "field": "level=info rank={r} ",
    "process": "Process {r}: ",
    "task": "<task {r}> ",
}
OTHERS = {  # numbers of nodes, groups, epochs, rows
    "node": "[node_rank {r}] ",
    "group": "pp-rank-{r}: ",
    "node of skypilot": "(worker{r}, rank={r}, pid=2275, ip=172.31.81.91) ",
    "epoch": "[{e}/6][{r}/40] ",
    "layer": "({e}): ",
    "axes": "[dp{h}/tp{n}] ",
    "node and local": "[{h}:{n}] ",
    "expert": "expert {r}: ",
    "device": "GPU {r}: ",
    "stage": "[stage:{r}] ",
    "version": "v0.{r}: ",
    "seed": "seed {r} | ",
}


def printed(prefix):
    """(rank, text) of six ranks in any order, and their lines."""
    order = [(rank * 5 + n * n) % 6 for n in range(8) for rank in range(6)]
    rows = [(rank, SAID[(n + rank) % len(SAID)]) for n, rank in enumerate(order)]
    places = [{"r": rank, "n": rank % 4, "h": rank // 4, "e": n % 6} for n, (rank, _) in enumerate(rows)]
    return rows, [prefix.format(**place) + text for place, (_, text) in zip(places, rows, strict=True)]


@pytest.mark.parametrize("form", ALONE)
def test_a_rank_is_read_where_nothing_failed_yet(form):
    """Each line has its rank, and nothing else before its text."""
    rows, text = printed(ALONE[form])

    assert [(rank, said.strip()) for rank, said in rows] == [(line.rank, line.body.strip()) for line in read(*text)]


@pytest.mark.parametrize("form", ["letter", "number of", "rank and local"])
def test_a_rank_is_read_where_one_prints_many_lines_at_a_time(form):
    """As in tracebacks, which are most of what is kept of a long log."""
    order = [(rank * 5 + n * n) % 6 for n in range(4) for rank in range(6)]
    rows = [(rank, f"{SAID[k % len(SAID)]} {k}") for rank in order for k in range(9)]
    text = [ALONE[form].format(r=rank, n=rank % 4, h=rank // 4) + said for rank, said in rows]

    assert [rank for rank, _ in rows] == [line.rank for line in read(*text)]


@pytest.mark.parametrize("form", OTHERS)
def test_other_numbers_are_no_ranks(form):
    """What is not known stays unknown."""
    assert {None} == {line.rank for line in read(*printed(OTHERS[form])[1])}


def test_a_number_before_few_lines_is_that_of_a_list():
    """Tasks number nearly all lines, or those of a traceback."""
    text = ["start", "5: loss", "going on", "still there", "end"]
    assert [(None, line) for line in text] == [(line.rank, line.body) for line in read(*text)]
    failed = [
        *text[:1],
        *text[2:],
        "5: Traceback (most recent call last):",
        '5:   File "a.py", line 3',
        "5: KeyError: 1",
    ]
    assert [None] * 4 + [5] * 3 == [line.rank for line in read(*failed)]
    assert [None, 3, None, None, None] == [
        line.rank for line in read("srun: error: n2: task 3: Killed", "3: bye", *text[2:])
    ]


def test_a_date_without_seconds_may_precede_a_rank():
    """As a platform prints it, which indents its lines."""
    parsed = prefixes.without_prefixes(" 2025-02-18 12:54 [rank13]: [Rank 1] Watchdog caught a timeout")

    assert (13, "[Rank 1] Watchdog caught a timeout") == (parsed.rank, parsed.body)


def test_how_often_ray_has_seen_a_line_is_no_part_of_it():
    """Ray colours the count, and explains the first one."""
    ray = "\x1b[36m(TrainController pid=16123)\x1b[0m {}\x1b[32m [repeated 2x across cluster]{}\x1b[0m"
    tail = " (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log deduplication.)"
    for words, more in (("ValueError: shard 3 is truncated", ""), ("Traceback (most recent call last):", tail)):
        assert words == prefixes.without_prefixes(ray.format(words, more)).body


DASK_NEW = r"""2026-11-27 04:09:36,346 - distributed.worker - ERROR - Compute Failed
Key:       run-a428
State:     executing
Task:  <Task 'run-a428' run(, ...)>
Exception: "KeyError('labels')"
Traceback: '  File "/job/prog.py", line 16, in run\n    return train(rank)\n  File "/job/prog.py", line 8, in train\n'

2026-11-27 04:09:36,378 - distributed.worker - ERROR - Compute Failed
Key:       run-ad04
State:     executing
Task:  <Task 'run-ad04' run(, ...)>
Exception: "RuntimeError('[/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1950.')"
Traceback: '  File "/job/prog.py", line 10, in train\n  File "/opt/site-packages/torch/distributed/distributed_c10d.py", line 3252, in all_reduce\n'
"""  # noqa: E501
DASK_OLD = """{host}2022-11-13 17:01:17,386 - distributed.worker - WARNING - Compute Failed
{host}Key:       dispatch_with_ddp-cbb
{host}Function:  dispatch_with_ddp
{host}args:      ()
{host}kwargs:    {{'master_addr': '172.23.0.4', 'master_port': 12345, 'rank': 1, 'world_size': 2}}
{host}Exception: "ValueError('no labels')"
{host}
"""


def test_a_task_that_failed_on_a_worker_of_dask_is_told_as_python_tells_it():
    """With the lines where it raised; what waited for it is the echo."""
    found = verdict(DASK_NEW)
    own, _ = event_reader.find_events(lines.split_lines(DASK_NEW)).raised

    assert (found.kind, found.claims[0].words) == ("dead", "KeyError: 'labels'")
    assert (own.line, own.frames[-1].line) == (5, 8)


@pytest.mark.parametrize("host", ["", "worker-1     | "])
def test_the_rank_with_which_dask_called_a_task_is_its_rank(host):
    (raised,) = event_reader.find_events(lines.split_lines(DASK_OLD.format(host=host))).raised
    assert (raised.text, raised.rank, raised.line) == ("ValueError: no labels", 1, 6)


@pytest.mark.parametrize("cut", ["'KeyError(", '"', "'" + "\\" * 5000, "f(" * 5000, '"' + "(" * 200_000 + '"'])
def test_a_report_of_dask_that_is_no_literal_stays_as_it_is(cut):
    text = DASK_NEW.replace("\"KeyError('labels')\"", cut)
    assert len(lines.split_lines(text)) >= len(text.rstrip("\n").split("\n"))


def test_the_number_of_a_host_before_a_traceback_is_no_rank():
    rows = ["Traceback (most recent call last):", '  File "/r/pretrain.py", line 19, in <module>', "ImportError: x"]
    found = lines.split_lines("".join(f"gpu-a100-07: {row}\n" for row in rows))

    assert {(line.rank, line.host) for line in found if line.body} == {(None, "gpu-a100-07")}
