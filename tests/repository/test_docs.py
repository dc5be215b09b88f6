"""Every code block of the documentation is run, or at least parsed; what can't run says why.

A comment before a block (or `given` anywhere) tells how:

<!-- not run: why -->              it is parsed only
<!-- file: train.py -->            it is a file that later commands of the page find
<!-- given: NAME = PATH -->        such a file, taken from the repository
<!-- with: a job that hangs -->    its commands look at a job of two ranks, 28371, that runs the page's train.py
<!-- output of: COMMAND -->        a text: what the command prints, called at the top of the repository

Shown output is compared line by line, in order: `...` stands for anything, numbers of several digits for any number.
"""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
import yaml
from markdown_it import MarkdownIt
from places import ROOT

from dtdebug.cli import main
from dtdebug.notebook import magic
from dtdebug_taxonomy.checks.run.settings import parse_settings

MADE = set((ROOT / "docs" / ".gitignore").read_text(encoding="utf-8").split())
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(f"docs/{f.name}" for f in sorted((ROOT / "docs").glob("*.md")) if f"/{f.name}" not in MADE),
]
MARK = re.compile(r"<!-- (not run|file|given|with|output of): (.+?) -->", re.DOTALL)
PID = "28371"


class Block(NamedTuple):
    """A code block and what is said about it."""

    line: int
    language: str
    text: str
    marks: dict[str, str]


def blocks(page: str) -> list[Block]:
    """The code blocks of a page, but for Sphinx's directives."""
    found, marks = [], {}
    for token in MarkdownIt().parse((ROOT / page).read_text(encoding="utf-8")):
        if token.type == "fence" and not token.info.startswith("{"):
            found.append(Block(token.map[0] + 1, token.info.split(" ")[0], token.content, marks))
        marks = dict(MARK.findall(token.content)) if token.type == "html_block" else {}
    return found


def given(page: str) -> dict[str, Path]:
    """Files of the repository that a page's commands find under another name."""
    text = (ROOT / page).read_text(encoding="utf-8")
    rows = [what.split(" = ") for kind, what in MARK.findall(text) if kind == "given"]
    return {name: ROOT / path for name, path in rows}


class Reader:
    """Runs the blocks of one page, as its reader would: in one folder, from top to bottom."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.job: subprocess.Popen | None = None
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = os.environ | {
            "PATH": programs,
            "DTDEBUG_STATE": str(folder / "state"),
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "200",
        }

    def run(self, command: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            check=False,
            cwd=cwd or self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        assert done.returncode in {0, 1, 2}, done.stdout
        return done.stdout.replace(str(self.folder), "/job")

    def hanging(self) -> int:
        """The process id of a job that soon hangs."""
        command = ["torchrun", "--standalone", "--nproc-per-node", "2", "train.py"]
        if self.job is None:
            self.job = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self.job.pid

    def end(self) -> None:
        if self.job is None:
            return
        with suppress(psutil.NoSuchProcess):
            launcher = psutil.Process(self.job.pid)
            for process in (*launcher.children(recursive=True), launcher):  # each rank has a session of its own
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        self.job.wait(10)


@pytest.fixture
def reader(tmp_path):
    reader = Reader(tmp_path)
    yield reader
    reader.end()


def first_missing(shown: list[str], printed: str) -> str | None:
    """The first shown line that was not printed after those before it."""
    lines = iter(" ".join(line.split()) for line in printed.splitlines())
    for line in shown:
        pieces = " ".join(line.split()).split("...")
        pattern = ".*".join(re.sub(r"\d{2,}", r"\\d+", re.escape(piece)) for piece in pieces)
        if line.strip() not in {"", "..."} and not any(re.fullmatch(pattern, printed) for printed in lines):
            return line
    return None


def commands(text: str) -> list[list[str]]:
    """The calls of dtdebug in a script, as lists of arguments; what may be left out is there."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(re.sub(r"[\[\]](?=-|\s|$)", "", line), posix=True, punctuation_chars="|;&<>()")
        lexer.whitespace_split = True
        words = [*lexer]
        for place, word in enumerate(words):
            first = place == 0 or set(words[place - 1]) <= set("|;&()")
            if first and word.rpartition("/")[2] == "dtdebug":
                end = (i for i, w in enumerate(words) if i > place and set(w) <= set("|;&<>()"))
                found.append(words[place + 1 : next(end, len(words))])
    return found


def check_script(block: Block, reader: Reader) -> None:
    """A script is one that bash can read, and its calls of dtdebug are such as dtdebug takes."""
    text = "\n".join(line[2:] for line in block.text.splitlines() if line.startswith("$ ")) or block.text
    subprocess.run(["bash", "-n", "-c", text], check=True, timeout=10)
    for arguments in commands(text):
        if arguments and not arguments[0].replace("-", "").isalpha():  # a thing, which no misspelt command is taken for
            arguments.insert(0, "diagnose")
        said = StringIO()
        try:
            with redirect_stderr(said):
                main.parser().parse_args(["1" if word == "N" else word for word in arguments])
        except SystemExit:
            pytest.fail(f"dtdebug {shlex.join(arguments)}: {said.getvalue()}")


def check_console(block: Block, reader: Reader) -> None:
    """Each command prints what is shown below it."""
    check_script(block, reader)
    if "not run" in block.marks:
        return
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        hangs = "with" in block.marks
        deadline = time.monotonic() + (60 if hangs else 0)
        if hangs:
            command = command.replace(PID, str(reader.hanging()))
        printed = reader.run(command)
        while first_missing(shown, printed) and time.monotonic() < deadline:  # the ranks may not hang yet
            time.sleep(1)
            printed = reader.run(command)

        assert first_missing(shown, printed) is None, f"{first_missing(shown, printed)!r} is not in:\n{printed}"


def check_python(block: Block, reader: Reader) -> None:
    """A program runs to its end."""
    ast.parse(block.text)
    if name := block.marks.get("file"):
        (reader.folder / name).write_text(block.text, encoding="utf-8")
    elif "not run" not in block.marks:
        (reader.folder / "shown.py").write_text(block.text, encoding="utf-8")
        printed = reader.run(f"{shlex.quote(sys.executable)} shown.py && echo its end")

        assert printed.endswith("its end\n"), printed


def check_toml(block: Block, reader: Reader) -> None:
    """Settings are such as dtdebug takes, without a complaint."""
    table = tomllib.loads(block.text).get("tool", {}).get("dtdebug", {})
    _, complaints = parse_settings(table)

    assert [] == complaints


def check_text(block: Block, reader: Reader) -> None:
    """A text without a language is what a command prints; else it says what it is."""
    assert {"output of", "not run"} & set(block.marks), "give it a language, or say before it what it is"
    if command := block.marks.get("output of"):
        printed = reader.run(command, ROOT)

        assert first_missing(block.text.splitlines(), printed) is None, printed


def check_ipython(block: Block, reader: Reader) -> None:
    """Magics are those that there are."""
    for line in block.text.splitlines():
        words = line.split()
        assert words[:2] == ["%load_ext", "dtdebug"] or words[0] == "%dtdebug", line
        assert words[0] == "%load_ext" or len(words) == 1 or words[1] in magic._VERBS or "  " in line, line


def check_editor(block: Block, reader: Reader) -> None:
    """The editor of that language can read it."""
    file = reader.folder / f"shown.{block.language}"
    file.write_text(block.text, encoding="utf-8")
    lines = f'(with-temp-buffer (insert-file-contents "{file}") (check-parens) (read (current-buffer)))'
    command = {
        "lua": ["nvim", "--headless", "-u", "NONE", "-c", f"lua assert(loadfile('{file}'))", "-c", "qall!"],
        "elisp": ["emacs", "-Q", "--batch", "--eval", lines],
    }[block.language]
    if shutil.which(command[0]):
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)

        assert (0, "") == (done.returncode, done.stderr.replace("\r", ""))


KINDS = {
    "": check_text,
    "console": check_console,
    "elisp": check_editor,
    "ipython": check_ipython,
    "json": lambda block, _: json.loads(block.text),
    "lua": check_editor,
    "python": check_python,
    "sh": check_script,
    "text": check_text,
    "toml": check_toml,
    "yaml": lambda block, _: yaml.safe_load(block.text),
}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.ranks] if page == "docs/hangs.md" else []) for page in PAGES],
)
def test_code_blocks_hold(page, reader):
    """Every block of a page does what the page says, or is at least what it claims to be."""
    for name, file in given(page).items():
        shutil.copyfile(file, reader.folder / name)
    found = sorted(blocks(page), key=lambda block: "file" not in block.marks)  # files first, wherever they are shown
    for block in found:
        place = f"{page}:{block.line}"
        assert block.language in KINDS, f"{place}: no test for a block of {block.language!r}"
        try:
            KINDS[block.language](block, reader)
        except (AssertionError, ValueError, SyntaxError, subprocess.SubprocessError, pytest.fail.Exception) as error:
            raise AssertionError(f"{place}: {error}") from None


def test_comments_before_blocks_are_understood():
    """A misspelt mark would switch a test off unseen."""
    known = {"not run", "file", "given", "with", "output of"}
    for page in PAGES:
        for kind in re.findall(r"<!-- ([\w ]+):", (ROOT / page).read_text(encoding="utf-8")):
            assert kind in known, f"{page}: {kind}"


def test_pages_are_few_and_one_click_from_the_index():
    """A reader finds the page of a question at once; another question is a part of a page that there is."""
    written = {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")}
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = {target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", index)}

    assert len(written) <= 11
    assert written - linked == {"index.md", "how-it-works.md"}, "how-it-works is below Contribute"


@pytest.mark.parametrize(
    "page",
    ["README.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "benchmarks/README.md"],
)
def test_links_to_files_of_the_repository_lead_somewhere(page):
    """Files and headings; the site's own pages are checked where it is built."""
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path
        assert file.exists(), target
        if anchor:
            titles = re.findall(r"(?m)^#+ (.*)$", file.read_text(encoding="utf-8"))
            assert anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, target


def test_privacy_names_every_file_of_the_state_directory():
    """What is kept is told: a new file can't be forgotten."""
    told = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    code = [f for folder in ("kernel", "taxonomy") for f in (ROOT / folder).rglob("*.py") if "checks" not in f.parts]
    named = re.compile(r'^\w+ = "(\w+\.json)"$', re.MULTILINE)
    kept = {name for f in code for name in named.findall(f.read_text(encoding="utf-8"))}

    assert {"last.json", "wizard.json", "labs.json"} <= kept
    assert set() == {name for name in kept if f"`{name}`" not in told}


def test_shown_output_that_differs_is_seen():
    """The comparison can fail: by a word, by order, by a line that was never printed."""
    printed = "rank 1 waits (pid 4711)\nsecond ... line\n"

    assert first_missing(["rank 1 waits (pid 12345)", "...", "second ..."], printed) is None
    assert "rank 2 waits ..." == first_missing(["rank 2 waits ..."], printed)
    assert "rank 1 ..." == first_missing(["second ...", "rank 1 ..."], printed)


def test_calls_in_scripts_are_found():
    """Behind pipes, beside comments, in front of redirections, below a folder."""
    script = "torchrun a.py 2>&1 | dtdebug diagnose - --tee   # as it runs\n.venv/bin/dtdebug report x > y.md\n"

    assert [["diagnose", "-", "--tee"], ["report", "x"]] == commands(script)
