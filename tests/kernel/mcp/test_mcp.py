"""The tools for coding agents, asked by the SDK's own client over the standard streams of a real server."""

import asyncio
import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from places import TESTS

SAMPLE = TESTS / "samples" / "communication-error" / "torch-unused-parameters.txt"
GUARDED = """\
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.barrier()
"""


def ask(state, *calls):
    """What each call answers, in one session; the environment of the server is that of a user."""
    import mcp  # takes each worker a second

    environment = {**os.environ, "DTDEBUG_STATE": str(state)}
    server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "dtdebug", "mcp"], env=environment)

    async def talk():
        async with asyncio.timeout(240), mcp.Client(mcp.stdio_client(server)) as client:
            tools = (await client.list_tools()).tools
            return tools, [await client.call_tool(name, given) for name, given in calls]

    return asyncio.run(talk())


def test_an_agent_gets_typed_answers_with_the_record_of_each_claim(tmp_path):
    """All tools only look; a log is read, the last failure is kept for `why`, a program is checked and a page shown."""
    program = tmp_path / "train.py"
    program.write_text(GUARDED)
    tools, answers = ask(
        tmp_path / "state",
        ("diagnose", {"path": str(SAMPLE)}),
        ("why", {}),
        ("triage", {"paths": [str(SAMPLE)]}),
        ("check", {"paths": [str(program)]}),
        ("explain", {"name": "DT101"}),
        ("diagnose", {"situation": "it hangs after the first epoch", "answers": ["nodes=unknown"]}),
    )
    assert {tool.name for tool in tools} == {
        "diagnose", "why", "triage", "attach", "flight", "check", "doctor", "explain",
    }  # fmt: skip
    assert all(tool.annotations.read_only_hint and tool.output_schema and tool.description for tool in tools)
    read, last, job, checked, page, hang = (answer.structured_content for answer in answers)
    assert read["culprits"] == [0, 1]
    assert read["claims"][0]["record"] == "output line 25"
    assert read["causes"][0]["because"][0]["record"].startswith("printed line:25")
    assert "find_unused_parameters=True" in read["causes"][0]["fix"]
    assert last["causes"] == read["causes"]
    assert job["first"][0].startswith("rank 0: RuntimeError")
    assert [(row["id"], row["where"].split(":")[1]) for row in checked["findings"]] == [("DT101", "5")]
    assert page["result"].startswith("# DT101")
    assert not hang["understood"]
    assert "dtdebug attach" in hang["next"]


def test_what_can_not_be_read_is_one_line_that_says_so(tmp_path):
    """No tool takes an option or standard input for a path, and none falls silent."""
    _, answers = ask(
        tmp_path,
        ("diagnose", {}),
        ("diagnose", {"text": "x", "path": "y"}),
        ("diagnose", {"path": "--batch"}),
        ("why", {}),
        ("attach", {"pid": 2**22 + 1}),
        ("flight", {"folder": str(tmp_path)}),
        ("explain", {"name": "--tree"}),
    )
    assert all(answer.is_error for answer in answers)
    lines = [answer.content[0].text for answer in answers]
    assert all("\n" not in line for line in lines), lines
    for line, part in zip(
        lines,
        (
            "text, path or situation",
            "not both",
            "/--batch: no such file",
            "why: no failure",
            "attach",
            "flight",
            "--tree",
        ),
        strict=True,
    ):
        assert part in line


@pytest.mark.parametrize("taken_by", ["the process", "its reader"])
def test_an_interrupt_ends_it_though_its_client_stays(taken_by):
    """Its reader goes on waiting for standard input, and may be the thread that gets the signal."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}).encode() + b"\n"
    command = [sys.executable, "-m", "dtdebug", "mcp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        try:
            server.stdin.write(hello)
            server.stdin.flush()
            answer = server.stdout.readline()
            if taken_by == "its reader":
                threads = sorted(int(p.name) for p in Path(f"/proc/{server.pid}/task").iterdir())
                ctypes.CDLL(None).tgkill(server.pid, threads[-1], signal.SIGINT)
            else:
                server.send_signal(signal.SIGINT)
            status = server.wait(120)
        finally:
            server.kill()

    assert b'"serverInfo"' in answer
    assert 130 == status


def test_a_tool_runs_no_module_of_the_folder_in_which_the_agent_works(tmp_path, monkeypatch):
    from dtdebug.mcp import server

    (tmp_path / "train.log").write_text("RuntimeError: NCCL error in: a.cpp:1\n")
    for name in ("dtdebug", "json", "msgspec"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))

    assert server.diagnose(path="train.log").answer
    assert not (tmp_path / "ran").exists()
