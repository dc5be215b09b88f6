"""The terminal wizard as a user has it: in a pseudo-terminal, and through a pipe."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from dtdebug import wizard

pytestmark = pytest.mark.terminal

PLAY = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_wizard import small_knowledge
from dtdebug.wizard import resume, terminal
from dtdebug.wizard.session import Session
from dtdebug_taxonomy.model.snapshot import Snapshot

session = resume() if "--resume" in sys.argv else Session(snapshot=Snapshot())
end = terminal.run(session, small_knowledge())
print("END", len(end.answers), end.is_stopped)
"""
PROMPT = r"Answer \[1-2 \? h w b l q\]: "
FIRST = r"What do you see\? \(a line or two; empty line to skip\) "
WAIT = 30


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """The wizard's state in a folder of the test's own, here and in the processes that it starts."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE")}
    return {**kept, "TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


@pytest.fixture
def terminal(environment):
    """Starts the wizard in a pseudo-terminal of 80 columns; ends its process group afterwards."""
    started = []

    def start(*arguments, **variables):
        child = pexpect.spawn(
            sys.executable,
            ["-c", PLAY, *arguments],
            env=environment | variables,
            dimensions=(24, 80),
            timeout=WAIT,
            encoding="utf-8",
        )
        child.shown = ""
        child.logfile_read = _Transcript(child)
        started.append(child)
        return child

    yield start
    for child in started:
        if child.isalive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        child.close()


class _Transcript:
    def __init__(self, child):
        self.child = child

    def write(self, text):
        self.child.shown += text

    def flush(self):
        pass


def answer(child, line):
    child.expect(PROMPT)
    child.sendline(line)


def ended(child):
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


def test_answers_survive_ctrl_c_and_are_there_on_resume(terminal):
    """Two answers, Ctrl-C, a new process: both answers are known and the third question follows."""
    first = terminal()
    first.expect(FIRST)
    first.sendline("")
    answer(first, "1")
    answer(first, "no")
    first.expect(PROMPT)
    first.sendintr()
    first.expect("Your answers are kept. To go on: dtdebug wizard --resume")
    first.expect("END 2 False")
    assert ended(first) == 0

    kept = wizard.resume()
    assert [value for _, value in kept.answers] == ["yes", "no"]

    second = terminal("--resume")
    for key, value in sorted(kept.answers):
        second.expect(f"answered: {key} = {value}")
    second.expect("Question 3: ")
    answer(second, "b")
    second.expect("Question 2: ")
    answer(second, "q")
    second.expect("report to file")
    second.sendline("")
    second.expect("END 1 True")
    assert ended(second) == 0


def test_closed_terminal_loses_nothing(terminal):
    """A hang-up in the middle of a question keeps what was answered before."""
    child = terminal()
    child.expect(FIRST)
    child.sendline("")
    answer(child, "1")
    child.expect(PROMPT)
    child.close(force=True)
    assert len(wizard.resume().answers) == 1


def test_end_of_input_shows_the_advice_and_how_to_go_on(terminal):
    """Ctrl-D ends the wizard like the end of a pipe."""
    child = terminal()
    child.expect(FIRST)
    child.sendline("it hangs")
    child.expect("more, or an empty line")
    child.sendline("")
    answer(child, "1")
    child.expect(PROMPT)
    child.sendeof()
    child.expect("To go on: dtdebug wizard --resume")
    child.expect("END 1 False")
    assert ended(child) == 0


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_escape_without_colour_and_80_columns(terminal, variables):
    """NO_COLOR and a dumb terminal get plain lines that fit."""
    child = terminal(**variables)
    child.expect(FIRST)
    child.sendline("")
    for line in ("h", "w", "l", "wrong", "set nodes single", "1", "q"):
        answer(child, line)
    child.expect("report to file")
    child.sendline("")
    assert ended(child) == 0
    assert "\x1b" not in child.shown
    assert [line for line in child.shown.splitlines() if len(line) > 80] == []


def test_colour_on_a_terminal_that_has_it(terminal):
    """By default a colour terminal gets styles: the test above can fail."""
    child = terminal()
    child.expect(FIRST)
    child.sendline("")
    answer(child, "q")
    child.expect("report to file")
    child.sendline("")
    assert ended(child) == 0
    assert "\x1b[" in child.shown


def piped(environment, text):
    process = subprocess.Popen(
        [sys.executable, "-c", PLAY],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(text, timeout=WAIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return process.returncode, out.decode(), err.decode()


def test_plain_lines_through_a_pipe(environment):
    """Standard input may be a file: what was typed is echoed, nothing but text comes out."""
    status, out, err = piped(environment, b"it hangs\n\n1\n2\n?\nq\nreport.md\n")
    assert (status, err) == (0, "")
    assert "empty line to skip) it hangs\n" in out
    assert "Answer [1-2 ? h w b l q]: 2\n" in out
    assert "END 2 True" in out
    assert "\x1b" not in out
    assert "it hangs" in Path("report.md").read_text()


def test_pipe_that_ends_early_or_holds_bytes_that_are_no_text(environment):
    """Wrong bytes are an invalid choice; the end of the input keeps what was answered."""
    status, out, err = piped(environment, b"\n1\n\xff\xfe\x1b[31m\n2\n")
    assert (status, err) == (0, "")
    assert "no choice: 1-2" in out
    assert "END 2 False" in out
    assert len(wizard.resume().answers) == 2
    assert "\x1b" not in out


PROGRAM = """import torch.distributed as dist


def main(loss):
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        dist.all_reduce(loss)
        print(loss)
"""
LOG = """[rank0]: Traceback (most recent call last):
[rank0]:   File "{file}", line 7, in main
[rank0]:     dist.all_reduce(loss)
[rank0]: torch.distributed.DistBackendError: [Rank 0] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) \
ran for 600061 milliseconds before timing out.
"""


def test_a_diff_is_shown_once_and_it_is_said_whose_it_is(environment, tmp_path):
    """Two causes rest on the same finding; the fix is that of the first."""
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "train.log").write_text(LOG.format(file=tmp_path / "train.py"))
    command = [sys.executable, "-m", "dtdebug", "wizard", "train.log"]
    done = subprocess.run(
        command, env=environment, input="q\n", capture_output=True, text=True, check=False, timeout=60
    )

    assert done.stdout.count("--- a/train.py") == 1
    assert done.stdout.index("in your file:") < done.stdout.index("--- a/train.py")
    assert "+    dist.all_reduce(loss)" in done.stdout
