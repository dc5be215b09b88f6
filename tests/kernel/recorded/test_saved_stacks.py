"""Stacks in files: read from any tool and shell, judged as living ranks are; foreign ones are accused of nothing."""

import json

import pytest
from places import TESTS

from dtdebug.cli.main import main
from dtdebug.recorded.stack_texts import read_stacks
from dtdebug.recorded.things import recognise

SAVED = TESTS / "stacks"
SPY = [(SAVED / f"pyspy-rank{rank}.txt").read_text() for rank in range(4)]
FAULT = [(SAVED / f"faulthandler-rank{rank}.txt").read_text() for rank in range(4)]


def prefixed(prefix, texts):
    return "".join(f"{prefix(n)}{line}\n" for n, text in enumerate(texts) for line in text.splitlines())


FORMS = {
    "srun": prefixed(lambda n: f"{n}: ", SPY),
    "srun, two tasks a node": prefixed(lambda n: f"{n}: ", ["".join(SPY[:2]), "".join(SPY[2:])]),
    "pdsh": prefixed(lambda n: f"gpu-{n // 2:02}: ", SPY),
    "torchrun": prefixed(lambda n: f"[default{n}]:", FAULT),
    "pytorch": prefixed(lambda n: f"[rank{n}]: ", FAULT),
    "mpirun": prefixed(lambda n: f"[1,{n}]<stderr>: ", FAULT),
    "kubectl": prefixed(lambda n: f"[pod/job-worker-{n}/pytorch] ", SPY),
    "ray": prefixed(lambda n: f"(RayTrainWorker pid={70 + n}, ip=10.0.0.{n}) ", FAULT),
    "ray stack": "\n".join(
        f"Stack dump for user {28976 + n}  0.1  0.1 17 15 pts/0 Sl 12:48 0:01 ray::RayTrainWorker\n{text}"
        for n, text in enumerate(SPY)
    ),
    "debug server": "\n".join(f"=== Rank {n}: http://node{n // 2}:2345 ===\n{text}" for n, text in enumerate(FAULT)),
    "its page": "<h1>Stacks</h1>\n"
    + "\n".join(f"<h2>Rank {n}: http://node{n // 2}:2345</h2>\n<pre>{text}</pre>" for n, text in enumerate(FAULT)),
    "headings": "\n".join(f"====== rank {n} ======\n{text}" for n, text in enumerate(SPY)),
    "banners": "\n".join(f"===== host n{n // 2} pid {70 + n} rank {n} =====\n{text}" for n, text in enumerate(FAULT)),
    "process ids": "\n".join(f"== pid {28976 + n} ==\n{text}" for n, text in enumerate(SPY)),
    "markdown": "It hangs:\n\n" + "\n".join(f"**Rank {n}**\n\n```\n{text}```\n" for n, text in enumerate(SPY)),
}


def told(capsys, *words):
    status = main([*map(str, words)])
    return status, " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("form", FORMS)
def test_the_rank_that_never_came_is_named_in_every_form(form, tmp_path, capsys):
    """Whatever a shell, a launcher or a person has written around the stacks."""
    (tmp_path / "saved.txt").write_text(FORMS[form])

    status, text = told(capsys, tmp_path / "saved.txt")

    assert status == 1
    assert "rank 2 has not arrived at all_reduce" in text
    assert "ranks 0-1,3 train.py:22 waits in all_reduce" in text


def test_the_stack_of_a_crash_is_a_failure_and_no_living_rank(tmp_path, capsys):
    (tmp_path / "rank3.log").write_text(f"[rank3]: Fatal Python error: Segmentation fault\n\n{FAULT[0]}")

    status, text = told(capsys, tmp_path / "rank3.log")

    assert status == 1
    assert "Rank 3 raised Fatal Python error: Segmentation fault" in text


@pytest.mark.parametrize("tool", ["pyspy", "faulthandler"])
def test_many_files_are_the_ranks_of_their_names(tool, tmp_path, capsys):
    """Files or their folder, by each command that takes them."""
    for file in SAVED.glob(f"{tool}-rank*.txt"):
        (tmp_path / file.name).write_text(file.read_text())
    answers = {told(capsys, *verb, tmp_path) for verb in ([], ["diagnose"], ["triage"])}

    ((status, text),) = answers
    assert (status, "no rank is named" in text) == (1, False)
    assert "rank 2 has not arrived" in text


def test_tools_may_be_mixed(capsys):
    """Text, JSON, native frames and gdb, each of another rank."""
    names = ("faulthandler-rank0.txt", "native-rank1.txt", "pyspy-rank2.json", "gdb-rank1.txt", "pyspy-rank3.txt")

    status, text = told(capsys, *(SAVED / name for name in names))

    assert status == 1
    assert "rank 2 has not arrived at all_reduce" in text


def test_native_stacks_alone_show_who_sleeps_and_who_waits(tmp_path, capsys):
    """Gdb without Python's frames: the call of the C library and PyTorch's functions. A missing rank is not guessed."""
    for rank in (1, 2):
        (tmp_path / f"rank{rank - 1}.txt").write_text((SAVED / f"gdb-rank{rank}.txt").read_text())
    status, text = told(capsys, tmp_path)
    _, without = told(capsys, SAVED / "gdb-rank1.txt", SAVED / "gdb-rank2.txt")

    assert status == 1
    assert "rank 1 waits in a sleep; rank 0 waits for it" in text
    assert "Rank 1 waits in a collective; rank 2 waits in a sleep; read once" in without


def test_two_looks_show_who_moves(capsys):
    """The only rank that moved is said to, and one look promises less."""
    _, once = told(capsys, SAVED / "look-2.txt")
    status, twice = told(capsys, SAVED / "look-1.txt", SAVED / "look-2.txt")

    assert "Save the stacks once more" in once
    assert "certain" not in once.replace("not certain", "")
    assert status == 1
    assert "Rank 2 is the only one that moved between 2 looks; ranks 0-1,3 stand still." in twice


def test_two_looks_at_ranks_that_compute_are_no_hang(tmp_path, capsys):
    """Some left the call of the look before, which all have then passed; the others are at one line, and run."""
    look = {
        "waits": "    all_reduce (torch/distributed/distributed_c10d.py:3252)\n    train (train.py:22)\n",
        "computes": "    train (train.py:20)\n",
    }

    def save(name, *places):
        text = "".join(
            f'Process {70 + n}: python train.py\nPython v3.11.7 (python)\n\nThread {70 + n} (active): "MainThread"\n'
            f"{look[place]}    <module> (train.py:31)\n\n"
            for n, place in enumerate(places)
        )
        (tmp_path / name).write_text(text)
        return tmp_path / name

    first = save("1.txt", "waits", "waits", "computes", "computes")
    status, text = told(capsys, first, save("2.txt", *["computes"] * 4))

    assert status == 0
    assert "No hang so far: ranks 0-1 moved; ranks 2-3 are at one line in both looks, and wait for none." in text
    status, text = told(capsys, first, save("2.txt", "computes", "waits", "computes", "computes"))
    assert status == 1
    assert "No hang" not in text


def test_a_rank_may_be_looked_at_twice_in_its_own_file(tmp_path, capsys):
    """faulthandler prints no process id: its threads are the same ones again."""
    for rank, text in enumerate(FAULT):
        (tmp_path / f"stderr-rank{rank}.txt").write_text(text + text)

    status, text = told(capsys, tmp_path)

    assert status == 1
    assert "rank 2 has not arrived at all_reduce" in text
    assert "ranks 0-1,3" in text


def test_two_looks_in_one_file_are_the_same(tmp_path, capsys):
    """A process that is printed again was looked at again."""
    both = tmp_path / "both.txt"
    both.write_text((SAVED / "look-1.txt").read_text() + (SAVED / "look-2.txt").read_text())

    assert told(capsys, both) == told(capsys, SAVED / "look-1.txt", SAVED / "look-2.txt")


def test_the_one_process_outside_of_communication_is_the_root(tmp_path, capsys):
    """Groups wait in different calls, for each other and at last for it; several heads share one stack."""
    spy = 'Thread {} (idle): "MainThread"\n'
    call = "    {} (torch/distributed/distributed_c10d.py:{})\n    {} (train.py:{})\n    <module> (train.py:90)\n\n"
    heads = "".join(map(spy.format, range(500, 504)))
    loader = (
        "    wait (threading.py:306)\n    get (queue.py:179)\n    _try_get_data (torch/utils/data/dataloader.py:1011)\n"
        "    _next_data (torch/utils/data/dataloader.py:1207)\n    batch (train.py:12)\n    <module> (train.py:90)\n\n"
    )
    text = (
        f"Node 48:\n\n4 in:\n```\n{heads}{call.format('broadcast', 1191, 'share', 40)}```\n1 in:\n"
        f"{spy.format(504)}{loader}{spy.format(505)}{call.format('broadcast', 1191, 'split', 50)}"
        f"Node 49\n{spy.format(600)}{call.format('recv', 1002, 'receive', 60)}"
    )
    (tmp_path / "post.md").write_text(text)

    status, said = told(capsys, tmp_path / "post.md")

    assert status == 1
    assert "rank 4 waits for a worker of its data loader; ranks 0-3,5-6 wait for it" in said
    assert "rank 4 is process 504 on 48" in said


def test_launchers_and_workers_are_no_ranks(tmp_path, capsys):
    """They are counted as left out."""
    launcher = (
        "Process 9: /usr/bin/python /usr/bin/torchrun train.py\nPython v3.11.7 (/usr/bin/python3)\n\n"
        'Thread 9 (idle): "MainThread"\n    _invoke_run (torch/distributed/elastic/agent/server/api.py:877)\n'
        "    <module> (torchrun:8)\n"
    )
    worker = (
        "Process 99: /usr/bin/python train.py\nPython v3.11.7 (/usr/bin/python3)\n\n"
        'Thread 99 (idle): "MainThread"\n    get (multiprocessing/queues.py:113)\n'
        "    _worker_loop (torch/utils/data/_utils/worker.py:253)\n"
    )
    (tmp_path / "all.txt").write_text(launcher + "\n".join(SPY) + worker)

    found = read_stacks([tmp_path / "all.txt"])

    assert [s.pid for s in found.states] == [28976, 28977, 28978, 28979]
    assert found.left_out == ("1 launcher", "1 worker of a data loader")
    assert "rank 2 has not arrived" in told(capsys, tmp_path / "all.txt")[1]


def test_all_in_one_call_is_no_accusation(tmp_path, capsys):
    """No file says that these are all ranks."""
    (tmp_path / "a.txt").write_text("\n".join((SPY[0], SPY[1], SPY[3])))

    _, text = told(capsys, tmp_path / "a.txt")

    assert "Ranks 0-2 wait in all_reduce; none of them is behind: another rank may be" in text
    assert "link" not in text


def test_one_process_shows_where_it_is(tmp_path, capsys):
    """And that alone does not show more."""
    (tmp_path / "a.txt").write_text(SPY[2])

    _, text = told(capsys, tmp_path / "a.txt")

    assert "Process 28978 is in load_batch" in text
    assert "one process alone does not show which rank is behind" in text


def test_what_a_keyboard_interrupt_prints_is_a_stack_of_each_rank(tmp_path, capsys):
    """If each rank prints one; remarks after a frame are no part of it."""
    inner = (
        '  File "/opt/site-packages/torch/distributed/distributed_c10d.py", line 3252, in all_reduce\n    work.wait()\n'
    )
    head = 'Traceback (most recent call last):\n  File "/job/train.py", line {}, in {}\n    {}\n'
    waits = head.format(22, "train", "dist.all_reduce(batch)") + inner
    sleeps = head.format(11, "load", "time.sleep(10000)")
    texts = [f"{text}KeyboardInterrupt\n" for text in (waits, waits, sleeps, waits)]
    (tmp_path / "ctrl-c.txt").write_text(prefixed(lambda n: f"[rank{n}]: ", texts))
    (tmp_path / "noted.txt").write_text(FORMS["headings"].replace("train.py:11)", "train.py:11)    <-- stuck here"))

    for name in ("ctrl-c.txt", "noted.txt"):
        assert "rank 2 has not arrived at all_reduce" in told(capsys, tmp_path / name)[1]


OTHERS = {
    "Java": 'Full thread dump OpenJDK 64-Bit Server VM (17):\n\n"main" #1 prio=5 tid=0x7f nid=0x1 waiting\n'
    "   java.lang.Thread.State: TIMED_WAITING (sleeping)\n\tat Main.main(Main.java:5)\n",
    "Go": "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\nmain.main()\n\t/x/main.go:8 +0x1d\n",
    "native": "Thread 2 (Thread 0x7f1 (LWP 200)):\n#0  0x00007f2 in epoll_wait () from /lib/libc.so.6\n"
    "#1  0x00005555 in serve (n=1) at src/serve.c:3\nThread 1 (Thread 0x7f2 (LWP 199)):\n"
    "#0  0x00007f2 in sigsuspend () from /lib/libc.so.6\n#1  0x00005555 in main (argc=1) at src/main.c:3\n",
    "JavaScript": "TypeError: x is not a function\n    at Object.<anonymous> (/app/index.js:3:1)\n"
    "    at Module._compile (node:internal/modules/cjs/loader:1105:14)\n    at node:internal/main/run.js:17:47\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHERS)
def test_stacks_of_other_programs_are_said_to_be_that(kind, tmp_path, capsys):
    """Without a rank, and left out beside those of ranks."""
    other = tmp_path / "other.txt"
    other.write_text(OTHERS[kind])
    (tmp_path / "ranks.txt").write_text("\n".join(SPY))

    status, text = told(capsys, other)
    assert (status, kind in text) == (0, True)
    assert "no rank of a training is in it" in text
    status, text = told(capsys, tmp_path / "ranks.txt", other)
    assert (status, "rank 2 has not arrived" in text) == (1, True)


def test_a_log_in_which_a_stack_is_printed_stays_a_log(tmp_path):
    """A few lines of a stack make no file of stacks."""
    log = "".join(f"step {n} loss 0.5\n" for n in range(200)) + FAULT[0]
    (tmp_path / "train.log").write_text(log)

    assert [thing.kind for thing in recognise([str(tmp_path / "train.log")])] == ["log"]


@pytest.mark.parametrize("cut", [1, 7, 60, 333])
def test_cut_and_hostile_texts_are_read_or_refused(cut, tmp_path, capsys):
    """Nothing raises, no escape gets through."""
    text = FORMS["pdsh"][:-cut].replace("train.py", "tr\x1b[31main.py") + "Thread 0x (idle)\n" * cut
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "b.json").write_text(json.dumps([{"frames": [], "thread_name": "x"}] * cut)[:-1])

    for name in ("a.txt", "b.json"):
        main([str(tmp_path / name)])
        assert "\x1b" not in capsys.readouterr().out


UPLOADS = """Process 60414: python3.10 -u train.py
Thread 60414 (idle): "MainThread"
    read (ssl.py:1166)
    recv_into (ssl.py:1307)
    readinto (socket.py:717)
    send (%s)
    upload (hooks/board.py:73)
    fit (loop.py:58)
    <module> (train.py:103)
"""


@pytest.mark.parametrize(
    "library", ["botocore/httpsession.py:464", "httpx/_transports/default.py:250", "google/cloud/storage/blob.py:11"]
)
def test_the_users_own_line_is_shown_above_a_client_whose_path_is_short(library, tmp_path, capsys):
    """py-spy leaves out the folder that a package is installed in."""
    (tmp_path / "rank0.txt").write_text(UPLOADS % library)
    (tmp_path / "rank1.txt").write_text(UPLOADS % library)

    text = told(capsys, tmp_path)[1]

    assert "board.py:73" in text
    assert library.rpartition("/")[2] not in text
