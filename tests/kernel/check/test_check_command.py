"""`dtdebug check` and `%dtdebug check`: what they print, what they fix, and what bad input gets."""

import json
import multiprocessing
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from dtdebug.check.examine_all import examine_all
from dtdebug.check.examine_file import Selection, examine_file
from dtdebug.check.files import UnreadableError, files_to_check, settings_of
from dtdebug.check.notebook_cells import report
from dtdebug.cli.main import main
from dtdebug_taxonomy.checks import load

IMPORT = "import torch.distributed as dist\n"
BAD = IMPORT + "if dist.get_rank() == 0:\n    dist.barrier()\n"
MENDABLE = """import torch
import torch.distributed as dist
rows = [torch.zeros(3)] * dist.get_world_size()
dist.all_gather(rows, torch.ones(3))
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """Each test has its own folder, and settings are read anew."""
    settings_of.cache_clear()
    monkeypatch.chdir(tmp_path)


def checked(capsys, *arguments):
    """One line per finding, unless a test asks for another format."""
    status = main(["check", "--format", "concise", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_finding_is_one_line_and_status_1(capsys):
    Path("t.py").write_text(BAD)

    status, out, err = checked(capsys, "t.py")

    assert 1 == status
    assert out.startswith("t.py:3:5: warning DT101 barrier() runs only on rank 0")
    assert 1 == out.count("\n")
    assert "1 warning in 1 file; `dtdebug explain DT101` tells more\n" == err


def test_nothing_found_is_status_0(capsys):
    Path("t.py").write_text("print('hello')\n")

    assert (0, "", "nothing found in 1 file\n") == checked(capsys, "t.py")


def test_json_has_lines_and_columns_from_1_in_code_points(capsys):
    Path("t.py").write_text(
        IMPORT + 's = "é😀"; (dist.barrier() if dist.get_rank() == 0 else None)\n', encoding="utf-8"
    )

    _, out, _ = checked(capsys, "t.py", "--format", "json")
    (found,) = json.loads(out)

    assert {
        "id": "DT101",
        "name": "collective-under-rank-guard",
        "path": "t.py",
        "line": 2,
        "column": 12,
        "end_line": 2,
        "end_column": 26,
        "severity": "warning",
        "symptom": ["D.2.1"],
        "fix_pattern": "fix behavior logic",
        "fix": None,
    } == {k: v for k, v in found.items() if k != "message"}


def test_a_fix_in_json_leads_to_the_fixed_text(capsys):
    Path("t.py").write_text(MENDABLE)

    _, out, _ = checked(capsys, "t.py", "--format", "json", "--select", "DT401")
    (found,) = json.loads(out)
    (edit,) = found["fix"]["edits"]
    lines = MENDABLE.split("\n")
    (line, start), (_, end) = edit["start"], edit["end"]
    lines[line - 1] = lines[line - 1][: start - 1] + edit["text"] + lines[line - 1][end - 1 :]

    assert "rows = [torch.zeros(3) for _ in range(dist.get_world_size())]" == lines[2]


def test_fix_writes_safe_fixes_and_says_how_many(capsys):
    Path("t.py").write_bytes(MENDABLE.replace("\n", "\r\n").encode())

    status, _, err = checked(capsys, "t.py", "--fix", "--select", "DT401")

    assert (0, "1 fixed; nothing found in 1 file\n") == (status, err)
    assert b" for _ in range(" in Path("t.py").read_bytes()
    assert Path("t.py").read_bytes().count(b"\r\n") == MENDABLE.count("\n")


def test_a_fix_keeps_the_encoding_of_the_file(capsys):
    text = "# coding: latin-1\n# é\n" + MENDABLE
    Path("t.py").write_text(text, encoding="latin-1")

    checked(capsys, "t.py", "--fix", "--select", "DT401")

    assert b"# \xe9\n" in Path("t.py").read_bytes()


def test_sarif_names_each_rule_once_with_its_page(capsys):
    Path("t.py").write_text(BAD + "    dist.barrier()\n")

    _, out, _ = checked(capsys, "t.py", "--format", "sarif")
    (run,) = json.loads(out)["runs"]

    assert ["DT101"] == [r["id"] for r in run["tool"]["driver"]["rules"]]
    assert run["tool"]["driver"]["rules"][0]["helpUri"].startswith("https://")
    assert [3, 4] == [r["locations"][0]["physicalLocation"]["region"]["startLine"] for r in run["results"]]


def test_github_commands_escape_what_ends_them(capsys):
    folder = Path("a,b")
    folder.mkdir()
    (folder / "t.py").write_text(BAD)

    _, out, _ = checked(capsys, folder, "--format", "github")

    assert out.startswith("::warning file=a%2Cb/t.py,line=3,col=5,endLine=3,endColumn=19,title=DT101 ")
    assert 1 == out.count("\n")


@pytest.mark.parametrize(
    "comment",
    ["# dtdebug: ignore[DT101] all other ranks have left", "# dtdebug: ignore", "# dtdebug: ignore[DT999, DT1]"],
)
def test_a_comment_switches_a_finding_off(capsys, comment):
    Path("t.py").write_text(BAD.rstrip() + f"  {comment}\n")

    assert 0 == checked(capsys, "t.py")[0]


def test_a_comment_about_another_check_changes_nothing(capsys):
    Path("t.py").write_text(BAD.rstrip() + "  # dtdebug: ignore[DT999] no\n")

    assert 1 == checked(capsys, "t.py")[0]


def test_the_project_says_what_is_off_where_and_how_severe(capsys):
    Path("pyproject.toml").write_text(
        '[tool.dtdebug]\nseverity = { DT101 = "error" }\nper-file-ignores = { "tests/*" = ["DT1"] }\n'
    )
    Path("tests").mkdir()
    Path("tests/t.py").write_text(BAD)
    Path("t.py").write_text(BAD)

    status, out, _ = checked(capsys, ".")

    assert 1 == status
    assert ["t.py:3:5: error DT101"] == [line.split(" barrier")[0] for line in out.splitlines()]


def test_wrong_settings_are_told_and_the_others_hold(capsys):
    Path("pyproject.toml").write_text(
        '[tool.dtdebug]\nignore = ["DT101", "XX"]\ncolour = true\nseverity = { DT101 = "loud" }\n'
    )
    Path("t.py").write_text(BAD)

    status, out, err = checked(capsys, "t.py")

    assert (0, "") == (status, out)
    for words in ("no check 'XX'", "unknown key 'colour'", "'loud' is none of error"):
        assert words in err


def test_a_broken_pyproject_is_told_with_its_place(capsys):
    Path("pyproject.toml").write_text("[tool.dtdebug\n")
    Path("t.py").write_text(BAD)

    status, _, err = checked(capsys, "t.py")

    assert 1 == status
    assert "pyproject.toml" in err
    assert "line 1" in err


def test_cells_of_a_notebook_are_one_program(capsys):
    cells = [{"cell_type": "code", "source": [IMPORT]}, {"cell_type": "code", "source": BAD.removeprefix(IMPORT)}]
    Path("n.ipynb").write_text(json.dumps({"cells": cells}))

    status, out, _ = checked(capsys, "n.ipynb")

    assert 1 == status
    assert out.startswith("n.ipynb:cell 2:2:5: warning DT101")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        (["--select", "DT999", "."], "--select DT999: no such check"),
        (["--jobs", "-1", "."], "0 or more"),
    ],
)
def test_a_wrong_call_is_one_line_and_status_2(capsys, arguments, words):
    status, out, err = checked(capsys, *arguments)

    assert (2, "") == (status, out)
    assert words in err
    assert 1 == err.count("\n")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("latin.py", b"x = '\xe9'\n", "not utf-8 text (byte 5), skipped"),
        ("bin.sh", b"a\0b", "bin.sh: not text, skipped"),
        ("strange.py", b"# coding: klingon\nx = 1\n", "unknown encoding"),
        ("large.py", b"#" * 2_000_001, "larger than 2 MB"),
        ("no.ipynb", b"{", "is not a notebook"),
    ],
)
def test_a_file_that_cant_be_read_is_told_and_the_others_are_checked(capsys, name, data, words):
    Path(name).write_bytes(data)
    Path("t.py").write_text(BAD)

    assert (2, True) == ((found := checked(capsys, name))[0], words in found[2])
    status, out, err = checked(capsys, ".")
    assert (1, True, True) == (status, "DT101" in out, words in err)


def test_links_that_lead_in_a_circle_and_pipes_are_left_out(capsys):
    Path("a").mkdir()
    Path("a/t.py").write_text(BAD)
    Path("a/loop").symlink_to("..")
    os.mkfifo("a/pipe.py")

    assert [Path("a/t.py")] == list(files_to_check([Path("a")]))
    assert "is a pipe" in examine_file(Path("a/pipe.py"), Selection()).problems[0]
    with pytest.raises(UnreadableError):
        list(files_to_check([Path("a/none")]))


def test_many_files_are_examined_in_order_by_several_processes(tmp_path):
    paths = []
    for number in range(150):
        paths.append(tmp_path / f"t{number:03}.py")
        paths[-1].write_text("x = 1\n" * (number % 7) + BAD)

    done = []
    found = list(examine_all(paths, Selection(), jobs=2, progress=done.append))

    assert [str(p) for p in paths] == [f.path for e in found for f in e.findings]
    assert 150 == done[-1]
    assert [e.findings for e in found] == [e.findings for e in examine_all(paths, Selection(), jobs=1)]


def test_hints_are_shown_and_do_not_fail(capsys):
    """A warning fails, a hint does not, until the caller says from which severity on."""
    Path("hint.py").write_text("import torch\nmodel = torch.nn.DataParallel(model)\n")
    Path("bad.py").write_text(BAD)

    status, out, err = checked(capsys, "--select", "DT311", "hint.py")
    assert (0, True, True) == (status, "hint DT311" in out, "1 hint in 1 file" in err)
    assert 1 == checked(capsys, "--select", "DT311", "--fail-on", "hint", "hint.py")[0]
    assert (1, 0, 0, 0) == tuple(
        checked(capsys, *words, "bad.py")[0]
        for words in ([], ["--fail-on", "error"], ["--fail-on", "never"], ["--exit-zero"])
    )
    _, out, err = checked(capsys, "--select", "DT101,DT311", "--min-severity", "warning", ".")
    assert (True, False) == ("DT101" in out, "DT311" in out)
    _, out, err = checked(capsys, "--select", "DT101,DT311", ".")
    assert "`dtdebug explain DT101` tells more" in err, "the gravest is named, not the first"
    assert "explain DT101" not in out


def test_no_file_to_check_is_a_wrong_call(capsys):
    """A misspelt folder must not be green; a hook whose only file is excluded may be."""
    Path("empty").mkdir()
    Path("notes.md").write_text("words\n")

    assert (2, "", "dtdebug: check: no file to check in empty\n") == checked(capsys, "empty")
    status, _, err = checked(capsys, "notes.md")
    assert (2, "dtdebug: notes.md: not a kind of file that is checked, skipped\n") == (status, err)
    Path("pyproject.toml").write_text('[tool.dtdebug]\nexclude = ["old"]\n')
    Path("old/inner").mkdir(parents=True)
    Path("old/inner/t.py").write_text(BAD)
    assert (1, 0) == tuple(checked(capsys, *w, "old/inner/t.py")[0] for w in ([], ["--force-exclude"]))


def test_broken_python_is_said_and_fails_from_hints_on(capsys):
    Path("t.py").write_text(IMPORT + "def f(:\n    x\n")

    status, out, err = checked(capsys, "t.py")

    assert (0, "") == (status, out)
    assert "nothing found in what could be read of 1 file; 1 part not understood\n" in err
    assert "dtdebug: t.py: line 2 not understood" in err
    assert 1 == checked(capsys, "--fail-on", "hint", "t.py")[0]


def test_what_the_settings_exclude_and_git_ignores_is_left_out_of_folders(tmp_path):
    """Of a repository in the folder, too; a file that git tracks is never ignored, and a named one is checked."""
    for name in ("a.py", "made/b.py", "sub/c_pb2.py", "old/d.py", "inner/e.py", "inner/out/f.py", "made/kept.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(BAD)
    (tmp_path / "pyproject.toml").write_text('[tool.dtdebug]\nexclude = ["old/", "*_pb2.py"]\n')
    (tmp_path / ".gitignore").write_text("made/\n")
    for folder in (tmp_path, tmp_path / "inner"):
        subprocess.run(["git", "init", "-q", folder], check=True, timeout=60)
    subprocess.run(["git", "-C", tmp_path, "add", "-f", "made/kept.py"], check=True, timeout=60)
    (tmp_path / "inner" / ".gitignore").write_text("out\n")

    found = {p.relative_to(tmp_path).as_posix() for p in files_to_check([tmp_path])}
    named = list(files_to_check([Path("inner/out"), Path("old/d.py")]))

    assert {"a.py", "made/kept.py", "inner/e.py"} == found
    assert [Path("inner/out/f.py"), Path("old/d.py")] == named


def test_git_runs_no_program_that_a_repository_names(tmp_path):
    """An unpacked archive can hold a repository with settings."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True, timeout=60)
    hook = tmp_path / "hook.sh"
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    subprocess.run(["git", "-C", tmp_path, "config", "core.fsmonitor", str(hook)], check=True, timeout=60)

    assert [hook] == list(files_to_check([tmp_path]))
    assert not Path("ran").exists()


def test_a_baseline_accepts_what_was_there_wherever_its_line_is_now(capsys):
    """Each finding once: the second of the same line is new; fixed ones leave no trace."""
    Path("t.py").write_text(BAD)
    assert 0 == checked(capsys, "--baseline", "known.json", "--write-baseline", "t.py")[0]

    Path("t.py").write_text("# a line more\n" + BAD.replace("    dist", "        dist"))
    assert (0, "") == checked(capsys, "--baseline", "known.json", "t.py")[:2]
    Path("t.py").write_text(BAD + "    dist.barrier()\n")
    status, out, err = checked(capsys, "--baseline", "known.json", "t.py")

    assert (1, ["t.py:4:5: warning DT101"]) == (status, [line.split(" barrier")[0] for line in out.splitlines()])
    assert "1 known from the baseline" in err


@pytest.mark.parametrize(
    ("data", "words"),
    [(None, "can't be read"), (b"[]", "not a baseline"), (b'{"version": 2, "findings": []}', "not a baseline")],
)
def test_a_baseline_that_is_none_is_one_line(capsys, data, words):
    Path("t.py").write_text(BAD)
    if data is not None:
        Path("known.json").write_bytes(data)

    status, out, err = checked(capsys, "--baseline", "known.json", "t.py")

    assert (2, "", 1, True) == (status, out, err.count("\n"), words in err)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("x = 1  # dtdebug: ignore[DT101] why", "no finding of DT101 here"),
        ("x = 1  # noqa: E501, DT101", "no finding of DT101 here"),
        ("x = 1  # dtdebug: ignore[DT999]", "no finding of DT999 here"),
        ("x = 1  # dtdebug: ignore", "no check here"),
        ("# dtdebug: ignore-file[DT5]", "no finding of DT5 in this file"),
        ("    dist.barrier()  # noqa: DT101", ""),
        ("    dist.barrier()  # noqa: E501, DT101", ""),
        ("    dist.barrier()  # dtdebug: ignore[DT1] why", ""),
        ("x = 1  # noqa", ""),
        ("x = 1  # noqa: E501", ""),
        ('x = "# dtdebug: ignore[DT101]"', ""),
        ("x = 1  # dtdebug: ignore[DT210] switched off in the settings", ""),
    ],
)
def test_a_comment_that_suppresses_nothing_is_a_hint(capsys, line, told):
    Path("pyproject.toml").write_text('[tool.dtdebug]\nignore = ["DT210"]\n' if "DT210" in line else "")
    Path("t.py").write_text(f"{IMPORT}if dist.get_rank() == 0:\n    pass\n{line}\n")

    status, out, _ = checked(capsys, "t.py")

    assert 0 == status
    assert bool(told) == ("hint DT001" in out)
    assert told in out


def test_a_bare_noqa_is_about_another_tool(capsys):
    Path("t.py").write_text(BAD.rstrip() + "  # noqa\n")

    assert "DT101" in checked(capsys, "t.py")[1]


def test_a_frame_shows_the_line_with_marks_the_fix_and_the_page(capsys):
    Path("t.py").write_text(MENDABLE)
    _, out, _ = checked(capsys, "--format", "text", "--select", "DT401", "t.py")
    assert out.splitlines()[1:] == [
        " --> t.py:3:8",
        "  |",
        "3 | rows = [torch.zeros(3)] * dist.get_world_size()",
        "  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        "help: Make a tensor of its own for every rank (safe: --fix)",
        "3 + rows = [torch.zeros(3) for _ in range(dist.get_world_size())]",
        "  = https://dtdebug.readthedocs.io/en/latest/checks/DT401/",
        "",
    ]


def test_marks_stand_below_what_is_meant(capsys):
    """Behind tabs and wide characters; a line too long for the screen is cut around it."""
    Path("t.py").write_text(IMPORT + 'if dist.get_rank() == 0:\n\tprint("日本語", dist.barrier())\n')
    wide = checked(capsys, "--format", "text", "--select", "DT101", "t.py")[1].splitlines()
    Path("t.py").write_text(IMPORT + f'if dist.get_rank() == 0:\n    print("{"x" * 300}", dist.barrier())\n')
    long = checked(capsys, "--format", "text", "--select", "DT101", "t.py")[1].splitlines()

    assert ['3 |     print("日本語", dist.barrier())', "  |                     ^^^^^^^^^^^^^^"] == wide[3:5]
    assert ['3 | ...xxxxx", dist.barrier())', "  |            ^^^^^^^^^^^^^^"] == long[3:5]


def test_frames_have_colour_and_width_on_a_terminal_only(capsys, monkeypatch):
    Path("t.py").write_text(BAD.replace("barrier()", "barrier()  # \x1b[31m[red]"))
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    plain = checked(capsys, "--format", "text", "t.py")[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = checked(capsys, "--format", "text", "t.py")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    grey = checked(capsys, "--format", "text", "t.py")[1]

    assert "\x1b" not in plain
    assert "\x1b[1;33mwarning" in coloured
    assert "\x1b[31m[red]" not in coloured
    assert "[red]" in coloured
    assert "33m" not in grey
    seen = re.sub(r"\x1b\[[\d;]*m", "", grey).splitlines()
    assert 50 >= max(len(line) for line in seen if "https:" not in line)


def test_statistics_count_findings_of_each_check(capsys):
    Path("t.py").write_text(BAD + "    dist.barrier()\n")

    _, out, _ = checked(capsys, "--statistics", "--select", "DT101", "t.py")

    assert "     2  DT101  warning      collective-under-rank-guard\n" == out


def test_sarif_has_fingerprints_that_survive_a_moved_line_and_fixes(capsys):
    def result():
        return json.loads(checked(capsys, "--format", "sarif", "--select", "DT401", "t.py")[1])["runs"][0]["results"][0]

    Path("t.py").write_text(MENDABLE)
    before = result()
    Path("t.py").write_text("# a line more\n" + MENDABLE)
    after = result()

    assert before["partialFingerprints"] == after["partialFingerprints"]
    (replaced,) = after["fixes"][0]["artifactChanges"][0]["replacements"]
    assert {"startLine": 4, "startColumn": 8, "endLine": 4, "endColumn": 48} == replaced["deletedRegion"]
    assert "[torch.zeros(3) for _ in range(dist.get_world_size())]" == replaced["insertedContent"]["text"]


def test_gitlab_and_junit_read_their_own_formats(capsys):
    Path("t.py").write_text(BAD + "x = 1  # dtdebug: ignore[DT101] <&>\n")

    rows = json.loads(checked(capsys, "--format", "gitlab", "t.py")[1])
    top = ET.fromstring(checked(capsys, "--format", "junit", "t.py")[1])
    empty = ET.fromstring(checked(capsys, "--format", "junit", "--select", "DT502", "t.py")[1])

    assert [("major", 3), ("info", 4)] == [(r["severity"], r["location"]["lines"]["begin"]) for r in rows]
    assert 2 == len({r["fingerprint"] for r in rows})
    assert ["failure", "skipped"] == [case[0].tag for case in top.iter("testcase")]
    assert ("2", "1") == (top.get("tests"), top.get("failures"))
    assert ("1", "0") == (empty.get("tests"), empty.get("failures"))


@pytest.mark.parametrize(
    ("name", "words"),
    [("DT001", ("# DT001", "## Use instead")), ("unused-ignore", ("# DT001",)), ("dt5", ("DT501", "DT502"))],
)
def test_ids_and_their_beginnings_are_explained(capsys, name, words):
    assert 0 == main(["explain", name])
    out = capsys.readouterr().out
    assert all(word.removeprefix("# ") in out for word in words)


def test_no_process_is_left_by_a_run_over_many_files(tmp_path, monkeypatch):
    """A pool that outlives the run meets closed pipes when the interpreter ends."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    _many(tmp_path)

    assert 70 == len(list(examine_all(sorted(tmp_path.glob("*.py")), Selection(), jobs=2, keep=True)))
    assert [] == multiprocessing.active_children()


def test_a_defect_of_a_check_is_a_line_not_a_traceback(tmp_path, monkeypatch):
    def broken(source):
        raise RuntimeError("defect")

    monkeypatch.setattr(type(load()["DT101"]), "function", property(lambda self: broken))
    (tmp_path / "t.py").write_text(BAD)

    assert (
        "internal error in a check (RuntimeError: defect)" in examine_file(tmp_path / "t.py", Selection()).problems[0]
    )


def test_the_cells_of_this_session_are_checked_as_they_ran_last():
    text = report(["", IMPORT, BAD.removeprefix(IMPORT), "%dtdebug check", BAD.removeprefix(IMPORT)], [])

    assert text.startswith("In[4], line 2: warning DT101 barrier()")
    assert text.endswith("1 found in 2 cells; `%dtdebug explain DT101` tells more\n")


def test_a_fix_is_shown_as_lines_taken_away_and_added():
    text = report(["", MENDABLE], [])

    assert "    -rows = [torch.zeros(3)] * dist.get_world_size()\n" in text
    assert "    +rows = [torch.zeros(3) for _ in range(dist.get_world_size())]\n" in text


def test_a_reader_that_leaves_early_is_no_failure(tmp_path):
    for number in range(3):
        (tmp_path / f"t{number}.py").write_text(BAD * 20)
    command = f"{sys.executable} -m dtdebug check {tmp_path} | head -1"

    ended = subprocess.run(command, shell=True, capture_output=True, timeout=60, check=False)

    assert 1 == ended.stdout.count(b"\n")
    assert b"Traceback" not in ended.stderr


def test_heuristics_are_silent_in_tests_and_in_packages(capsys):
    hint = "from torch import nn\n\n\ndef wrap(model):\n    return nn.DataParallel(model)\n"
    for name, text in {"train.py": hint, "test_train.py": hint, "inside.py": "from . import x\n" + hint}.items():
        Path(name).write_text(text)

    _, out, _ = checked(capsys, ".", "--select", "DT311")

    assert ["train.py:5:12: hint DT311"] == [line.split(" ", 3)[0] + " hint DT311" for line in out.splitlines()]


def _many(folder, count=70):
    for n in range(count):
        (folder / f"m{n:02}.py").write_text(BAD if n == 3 else IMPORT)


def test_unchanged_files_are_taken_from_the_former_run(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    (tree := tmp_path / "tree").mkdir()
    _many(tree)
    first = checked(capsys, "--jobs", "1", tree)
    monkeypatch.setattr(
        "dtdebug.check.examine_all.examine_file", lambda path, _: pytest.fail(f"{path} is examined again")
    )

    second = checked(capsys, "--jobs", "1", tree)

    assert first == second
    assert "DT101" in first[1]
    store = tmp_path / "state" / "checked.msgpack"
    assert [store] == list(store.parent.iterdir())
    assert 0o600 == store.stat().st_mode & 0o777


def test_what_has_changed_is_examined_again(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    (tree := tmp_path / "tree").mkdir()
    _many(tree)
    checked(capsys, "--jobs", "1", tree)
    (tree / "m05.py").write_text(BAD)
    (tree / "m03.py").write_text(IMPORT)

    changed = checked(capsys, "--jobs", "1", tree)[1]
    settings_of.cache_clear()
    (tree / "pyproject.toml").write_text('[tool.dtdebug]\nignore = ["DT101"]\n')

    assert "m05.py" in changed
    assert "m03.py" not in changed
    assert "" == checked(capsys, "--jobs", "1", tree)[1]


@pytest.mark.parametrize("store", [b"", b"\xff\x00", b"\x81\xc4\x01k\xc4\x01v", b"\x93\x01\x02\x03"])
def test_a_broken_store_costs_time_only(capsys, tmp_path, monkeypatch, store):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    (tree := tmp_path / "tree").mkdir()
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "checked.msgpack").write_bytes(store)
    _many(tree)

    assert "m03.py" in checked(capsys, "--jobs", "1", tree)[1]


@pytest.mark.parametrize(
    ("line", "severity"), [("", "hint"), ('nodes = int(os.environ["SLURM_JOB_NUM_NODES"])\n', "warning")]
)
def test_the_global_rank_as_a_device_is_a_hint_until_the_program_knows_of_several_machines(
    tmp_path, capsys, line, severity
):
    file = tmp_path / "train.py"
    file.write_text(f'import os\nimport torch\n{line}torch.cuda.set_device(int(os.environ["RANK"]))\n')

    main(["check", "--no-cache", "--format", "json", "--select", "DT202", str(file)])

    assert [r["severity"] for r in json.loads(capsys.readouterr().out)] == [severity]


@pytest.mark.parametrize(("line", "severity"), [("optimizer.zero_grad()", "hint"), ("fsdp = True", "warning")])
def test_gathering_the_weights_on_rank_0_is_a_hint_in_a_program_that_never_shards(tmp_path, capsys, line, severity):
    file = tmp_path / "train.py"
    file.write_text(
        f"from accelerate import Accelerator\n\naccelerator = Accelerator()\n{line}\n"
        "if accelerator.is_main_process:\n    accelerator.get_state_dict(model)\n"
    )

    main(["check", "--no-cache", "--format", "json", "--select", "DT103", str(file)])

    assert [r["severity"] for r in json.loads(capsys.readouterr().out)] == [severity]


@pytest.mark.parametrize("text", ["<html><body>404 not found</body></html>\n", "Dear all,\nthe job failed.\nhello\n"])
def test_a_named_file_that_is_not_python_is_said_to_be_none(capsys, text):
    Path("t.py").write_text(text)

    status, out, err = checked(capsys, "t.py")

    assert (2, "", "dtdebug: t.py: is not a Python program: no line of it is Python\n") == (status, out, err)
    assert main(["check", "."]) == 0  # in a folder it may be a template


@pytest.mark.parametrize("text", ["print 'a'\nimport os\n", "# nothing yet\n", '"""doc"""\n', ""])
def test_a_named_program_of_which_some_can_be_read_is_checked(capsys, text):
    Path("t.py").write_text(text)

    assert checked(capsys, "t.py")[0] == 0


@pytest.mark.parametrize("form", ["json", "sarif", "gitlab", "junit", "github", "text"])
def test_a_name_that_hides_text_reaches_no_terminal_as_it_is(capsys, form):
    name = "\u202eyp\u2066 \u200b.py"
    Path(name).write_text(BAD)

    main(["check", ".", "--format", form])
    out = "".join(capsys.readouterr())

    assert out
    assert not {"\u202e", "\u2066", "\u200b"} & {*out}
    if form in ("json", "gitlab"):
        rows = json.loads(out)
        assert [name] == [row.get("path") or row["location"]["path"] for row in rows]
