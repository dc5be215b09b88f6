"""The command: answers, formats, exit status, bad input."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from dtdebug.cli.main import ALIASES, VERBS, main, parser
from dtdebug.storage import budget
from dtdebug_taxonomy.knowledge.loader import load

OOM = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))


def command(*arguments, data=b"", **variables):
    """The real command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "dtdebug", *arguments], input=data, capture_output=True, timeout=60, check=False,
        env={**os.environ, **variables},
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_log_is_diagnosed(tmp_path, capsys):
    """Symptom, line, rank, cause, fix, next question; status 1 says that something was found."""
    log = tmp_path / "train.log"
    log.write_text("step 1\n" + OOM)
    status = main(["diagnose", str(log)])
    out = capsys.readouterr().out

    assert status == 1
    assert out.startswith("dtdebug: Rank 1 raised torch.OutOfMemoryError: CUDA out of memory.")
    assert "\nMaybe The batch" in out
    assert "\nFix   " in out
    assert len(out.splitlines()) <= 12


def test_a_pipe_is_diagnosed_and_passed_on():
    """`job 2>&1 | dtdebug diagnose - --tee` shows the job's output as well."""
    status, out, _ = command("diagnose", "-", "--tee", data=OOM.encode())

    assert status == 1
    assert out.startswith(OOM)
    assert "\nMaybe The batch" in out


@pytest.mark.parametrize(
    "words",
    [
        ["diagnose", "no@file"], ["flight", "no@folder"], ["diff", "no@", "no"], ["run", "--", "no@command"],
        ["attach", "no@"], ["explain", "no@"], ["triage", "--for@mat", "x"], ["report", "no@"], ["slow", "no@"],
        ["doctor", "--", "mpirun", "--hostfile", "no@", "python"], ["doctor", "--", "torchrun", "--nnodes=@2", "t@.py"],
    ],
)  # fmt: skip
def test_no_escape_of_a_name_reaches_the_terminal(words, capsys):
    hostile = "\x1b[2J\x9b31m\u202e"
    try:
        status = main([word.replace("@", hostile) for word in words])
    except SystemExit as error:
        status = error.code
    shown = "".join(capsys.readouterr())

    assert status
    assert not set(hostile[:1] + "\x9b\u202e") & set(shown)


def test_json_has_the_fields_of_the_batch_and_the_explanation(tmp_path, capsys):
    """All symptoms and all patterns are ranked; the first is explained."""
    log = tmp_path / "train.log"
    log.write_text(OOM)
    main(["diagnose", str(log), "--format", "json", "--answer", "activity=training"])
    answer = json.loads(capsys.readouterr().out)

    diagnosis = answer["diagnosis"]

    assert {"v", "verdict", "claims", "coverage", "diagnosis"} <= answer.keys()
    assert len(diagnosis["symptoms"]) == len(load().symptoms)
    assert diagnosis["symptoms"][0]["code"] == "D.1.2"
    assert diagnosis["symptoms"][0]["why"][0]["words"]
    assert answer["questions"] == [{"key": "activity", "answer": "training"}]
    assert "fix memory/core setting" in [p["pattern"] for p in diagnosis["fix_patterns"][:3]]
    assert answer["milliseconds"] > 0


def test_healthy_output_finds_nothing(tmp_path, capsys):
    """Status 0, and no invented fault."""
    log = tmp_path / "train.log"
    log.write_text("".join(f"epoch 1 step {n} loss {1 / (n + 1):.3f}\n" for n in range(50)))

    assert main(["diagnose", str(log)]) == 0
    assert "No known failure in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            (
                "Let the average be updated once per loop\n\nWhen I run\n`\nema.update()\n`\nit is done number of gpus"
                " times, is it possible to do it only once?\n"
            ),
            "Cause not known",
        ),
        (
            (
                "Validation per host\n\nI see that each worker runs it, eight times as often as wanted. How do I run it"
                " once?\n```\ntrainer.validate(model)\n```\n"
            ),
            "Next",
        ),
        ("My cake did not rise\n\nI used two eggs and flour. Why is it flat?\n", "Not recognised: "),
    ],
)
def test_a_complaint_gets_no_all_clear(text, told, tmp_path, capsys):
    """It is no log: that no failure is found in it says nothing."""
    file = tmp_path / "post.txt"
    file.write_text(text)

    assert main(["diagnose", str(file)]) == 1
    out = capsys.readouterr().out
    assert "No known failure" not in out
    assert told in out


def test_a_post_is_read_alike_in_a_file_and_in_quotes(tmp_path, capsys):
    """What it shows of the output is output, and no words of its writer's."""
    post = (
        "My fine-tuning on 8 GPUs is stuck, does anyone know why?\n\n```\n"
        "[rank3]:[E610 10:42:28.858931807 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation"
        " timeout: WorkNCCL(SeqNum=61, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for"
        " 600043 milliseconds before timing out.\n```\n"
    )
    file = tmp_path / "post.md"
    file.write_text(post)

    told = []
    for given in ([str(file)], ["--situation", post]):
        assert main(["diagnose", *given]) == 1
        told.append(capsys.readouterr().out)
    assert "Rank 3 timed out in all_reduce #61" in told[0]
    assert told[0] == told[1]


def test_an_exception_that_nothing_known_explains_is_named(tmp_path, capsys):
    """And no cause is claimed: it may be the program's own."""
    log = tmp_path / "train.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "/w/multigpu.py", line 9, in start\n    pick()\n'
        "RuntimeError: please name the rank in pick of 4 GPUs\n"
    )

    assert main(["diagnose", str(log)]) == 1
    told = capsys.readouterr().out
    assert told.startswith("dtdebug: RuntimeError: please name the rank in pick of 4 GPUs")
    assert "\nNo known failure of distributed training: it may be the program's own.\n" in told
    assert "Why " not in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["diagnose"], "name a log file"),
        (["diagnose", "no-such.log"], "no-such.log: no such file"),
        (["wizard", "no-such.log"], "no-such.log: no such file"),
        (["diagnose", "--situation", "x", "--answer", "nothing=yes"], "no observation 'nothing'"),
        (["diagnose", "--situation", "x", "--answer", "activity=sleeping"], "activity is one of installing"),
        (["explain", "D.9.9"], "'D.9.9' is not a symptom"),
        (["wizard", "--resume"], "there is no unfinished wizard"),
        (["report"], "no failure has been diagnosed yet"),
        (["diagnose", "--batch", "none.jsonl"], "none.jsonl: can't be read"),
        (["diagose"], "did you mean `dtdebug diagnose`?"),
        (["watch", "train.log"], "did you mean `dtdebug run --watch`?"),
        (["it-hangs"], "no such file, folder or process; put what you see in quotes"),
        (
            ["https://example.com/run.log"],
            "opens no web address; give it the text: curl -sL https://example.com/run.log",
        ),
        (["help", "bisekt"], "did you mean `dtdebug bisect`?"),
        (["completion", "tcsh"], "invalid choice: 'tcsh'"),
        (["lab", "solve"], "invalid choice: 'solve'"),
        (["attach", "--via", "rsh"], "invalid choice: 'rsh'"),
        (["replay", "folder"], "arguments are required: --rank; `dtdebug replay --help`"),
        (["isolate", "--budgets", "1"], "unrecognized arguments: --budgets; `dtdebug isolate --help`"),
    ],
)
def test_a_wrong_call_is_one_clear_line_and_status_2(arguments, words, capsys):
    """What was wrong, where, what to do."""
    try:
        status = main(arguments)
    except SystemExit as left:  # of the parser
        status = left.code
    assert status == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


def test_the_help_of_each_command_says_what_it_does_and_shows_a_call(capsys):
    """More than its list of options: a sentence, and a command line that this parser takes."""
    commands = next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)).choices
    assert {*commands} == {*VERBS}
    assert {"diagnose", "run", "attach", "lsp", "mcp", "slow", "bisect", "isolate"} <= {*commands}
    for name, each in commands.items():
        text = " ".join(each.format_help().split())
        names = [name, *(alias for alias, old in ALIASES.items() if name in (alias, old))]
        assert len(each.description or "") > 60, name
        calls = (f"`dtdebug {n}{end}" in text or f" dtdebug {n}" in (each.epilog or "") for n in names for end in " `")
        assert any(calls) or name == "lsp", name
        for call in re.findall(r"`dtdebug ([^`|>$]+)", each.epilog or ""):
            words = shlex.split(call)
            parser().parse_args(words if words[0] in VERBS else ["diagnose", *words])
    assert capsys.readouterr().err == ""


def test_empty_and_binary_input_are_refused(tmp_path, capsys):
    """An empty log says nothing; a core dump is not a log."""
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "core").write_bytes(b"\x7fELF" + bytes(4000))

    assert [main(["diagnose", str(tmp_path / name)]) for name in ("empty.log", "core")] == [2, 2]
    assert "is empty" in (err := capsys.readouterr().err)
    assert "is not text" in err


def test_a_batch_gives_one_line_a_case_and_asks_only_when_told_to(tmp_path, capsys):
    """The contract for measuring; a broken line costs that line only."""
    cases = tmp_path / "cases.jsonl"
    rows = [
        {"id": "a", "situation": "It stands still in hvd.init().", "evidence": "", "code": "ignored",
         "observations": {"activity": "initializing", "manifestation": "hang"}},
        {"id": "b", "situation": "", "evidence": OOM},
    ]  # fmt: skip
    cases.write_text(
        "\n".join([json.dumps(rows[0]), "{broken", json.dumps({"id": "c", "situation": 3}), json.dumps(rows[1])])
    )
    status = main(["diagnose", "--batch", str(cases)])
    captured = capsys.readouterr()
    plain = [json.loads(line) for line in captured.out.splitlines()]
    main(["diagnose", "--batch", str(cases), "--questions", "3"])
    asked = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert status == 2
    assert "cases.jsonl:2" in captured.err
    assert "cases.jsonl:3" in captured.err
    assert [r["id"] for r in plain] == ["a", "b"]
    assert {
        "id", "symptoms", "fix_patterns", "advice", "next", "ordinary", "questions", "milliseconds",
    } == set(plain[0])  # fmt: skip
    assert [r["questions"] for r in plain] == [[], []]
    assert 0 < len(asked[0]["questions"]) <= 3
    assert asked[0]["symptoms"][0]["code"] == "B.2"
    assert all(q["answer"] is None for q in asked[1]["questions"])


def test_a_batch_has_time_for_each_case_and_goes_on_after_one_that_nests(tmp_path, capsys, monkeypatch):
    granted = []
    monkeypatch.setattr(budget.Budget, "grant", lambda _self, seconds: granted.append(seconds))
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"id": "a"}\n{"output":' + "[" * 50_000 + '\n{"id": "b"}\n')
    status = main(["diagnose", "--batch", str(cases)])
    out, err = capsys.readouterr()

    assert status == 2
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["a", "b"]
    assert f"{cases}:2: " in err
    assert "internal error" not in err
    assert len(granted) == 3
    assert min(granted) > 0


def test_the_batch_ignores_labels_and_unasked_observations(tmp_path, capsys):
    """Nothing but situation and evidence moves a text-only answer."""
    base = {"id": "a", "situation": "Training is slow on 8 GPUs.", "evidence": ""}
    told = {
        **base,
        "code": "A.1",
        "accept": ["A.1"],
        "fix": "x",
        "framework": "horovod",
        "observations": {"activity": "installing"},
    }
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(base) + "\n" + json.dumps(told) + "\n")
    main(["diagnose", "--batch", str(cases)])
    one, two = (json.loads(line) for line in capsys.readouterr().out.splitlines())

    assert one["symptoms"] == two["symptoms"]
    assert one["fix_patterns"] == two["fix_patterns"]


def test_explain_needs_no_run(capsys):
    """A code, an id, a pattern, an indicator, an observation, the tree, the index."""
    for name in ("D.2.1", "hang", "fix communication configuration", "fix-network-setting", "activity", "r18"):
        assert main(["explain", name]) == 0
    assert main(["explain", "--tree", "--depth", "2"]) == 0
    assert main(["explain"]) == 0
    out = capsys.readouterr().out

    assert "# D.2.1 " in out
    assert "[activity]" in out
    assert "D.2.other" in out
    assert "# R18 rank-divergent control flow or uneven data (reconstructed)" in out


def test_nothing_is_printed_twice_into_a_closed_pipe():
    """`dtdebug explain | head -1` ends quietly."""
    done = subprocess.run(
        f"{sys.executable} -m dtdebug explain | head -1", shell=True, capture_output=True, timeout=60, check=False
    )

    assert done.stderr == b""


def test_a_state_folder_that_can_not_be_written_changes_nothing(tmp_path):
    """The diagnosis is printed all the same."""
    (tmp_path / "file").write_text("")
    status, out, err = command("diagnose", "-", data=OOM.encode(), DTDEBUG_STATE=str(tmp_path / "file" / "state"))

    assert (status, err) == (1, "")
    assert "\nMaybe The batch" in out


def test_a_broken_knowledge_file_names_file_place_and_what_was_expected(tmp_path):
    """One line, not a traceback."""
    import shutil

    import dtdebug_taxonomy
    from dtdebug_taxonomy.knowledge.loader import HOME, KnowledgeError, load

    shutil.copytree(HOME, tmp_path / "home")
    file = tmp_path / "home" / "symptoms" / "hang.toml"
    file.write_text(file.read_text().replace('effort = "edit"', 'effort = "soon"', 1))

    assert dtdebug_taxonomy.__version__
    with pytest.raises(KnowledgeError, match=r"hang\.toml.*soon.*cause.*effort"):
        load(tmp_path / "home")
