"""`dtdebug learn`: what there is, guides whose programs really run, and the rules that guides keep."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress

import msgspec
import pexpect
import pytest

from dtdebug.learn import notebooks, pages
from dtdebug_taxonomy.dev import lint_topics
from dtdebug_taxonomy.knowledge import topics
from dtdebug_taxonomy.knowledge.loader import KnowledgeError, load

LIMIT = 120
"""Seconds that nothing here may take."""
TOPICS = topics.load_topics()
PROGRAMS = {snippet.file: snippet for topic in TOPICS.values() for snippet in topic.snippets}
GUIDE = TOPICS["backends"]
QUICK = {"ring.py", "spawn.py", "shards.py", "restart.py"}
"""Programs that always run: one for each way in which they are started, and the one that needs the newest torch."""


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))


def dtdebug(*arguments, before="", **variables):
    """The real command: status, output, errors; `before` runs first, in the same process."""
    start = f"import sys\n{before}\nfrom dtdebug.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", start, *arguments], capture_output=True, text=True, timeout=LIMIT, check=False,
        env={**os.environ, **variables},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


# What guides are


def test_shipped_guides_are_tidy():
    """No rule for guides is broken."""
    assert [] == list(lint_topics.topic_problems(load()))


def test_every_question_of_the_study_is_counted_once():
    """The nine groups of the study, with its counts; communication has six parts."""
    counted = {group.name: group.question_count for group in topics.groups()}
    assert {
        "communication": 140, "parallelization": 80, "device-usage": 77, "performance": 72, "api-usage": 71,
        "function-support": 25, "model": 16, "evaluation": 7, "others": 6,
    } == counted  # fmt: skip
    assert {
        "algorithm": 35, "aggregation": 29, "configuration": 21, "backends": 19, "operators": 19, "synchronization": 17,
    } == {topic.name: topic.question_count for topic in topics.groups()[0].topics}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"title": "Backends"}, "title ends in '?', gist in '.'"),
        ({"counts": {"mine": {"backends": 1}}}, "counts.tosem23: how often it is asked"),
        ({"labs": ("bad-luck",)}, "labs: unknown ['bad-luck']"),
        ({"reference": ()}, "at least 2 references"),
        ({"symptoms": ("B.1", "D.1.1", "D.1.10", "B.3", "X.1")}, "symptoms: unknown ['X.1']"),
        ({"checks": ("DT201", "DT403")}, "names ['DT404'], which are neither in `symptoms` nor in `checks`"),
    ],
)
def test_broken_front_matter_is_told(change, problem):
    """Each rule says what to do."""
    assert [problem] == list(lint_topics._topic(load(), msgspec.structs.replace(GUIDE, **change)))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("## Usual", "\n" * 60 + "## Usual", "110 lines; 40 to 90 are good to read"),
        ("## Try it", "## Trial", f"headings are {', '.join(lint_topics.HEADINGS)}"),
        ("# torchrun --", "# first --", "program 1: its first line says how it is run: "),
        ("import torch\n", "import numpy\n", "backends.py: needs more than torch: ['numpy']"),
        ("assert ", "# ", "backends.py: asserts what it shows, and prints it"),
        ("value = ", "value := ", "backends.py: line 10: invalid syntax"),
        ("```python", "```", "shows no program"),
    ],
)
def test_broken_text_is_told(old, new, problem):
    """Length, headings, programs that say how they run and prove what they show."""
    text = GUIDE.body.replace(old, new)
    (found,) = lint_topics._topic(load(), msgspec.structs.replace(GUIDE, body=text))
    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no front matter", "begins with TOML between two lines"),
        ("+++\ntitle = 3\n+++\nbody", "title"),
        ("+++\ntitle = \n+++\nbody", "mine.md"),
        ('+++\ntitle = "t"\nsize = 3\n+++\nbody', "size"),
    ],
)
def test_broken_file_names_itself_and_what_is_wrong(tmp_path, text, problem):
    """A guide's front matter is strict."""
    (tmp_path / "mine.md").write_text(text)
    with pytest.raises(KnowledgeError, match=rf"mine\.md: .*{problem}|{problem}: "):
        topics.load_topics(tmp_path)


# How things are found


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("backends", "backends"),
        ("communication/backends", "backends"),
        ("Communication/Backend", "backends"),
        ("Device usage", "device-usage"),
        ("device_usage", "device-usage"),
        ("synchronisation", "synchronization"),
        ("parallelisation", "parallelization"),
        ("gloo", "backends"),
        ("communication", "communication"),
    ],
)
def test_a_topic_is_found_by_each_of_its_names(said, found):
    """Its own, with its group, in other spellings, by a word for it."""
    assert found == topics.find(said).name


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("bakends", "near: backends"),
        ("performance/backends", "near: backends"),
        ("firstfailure", "near: first-failure"),
        ("qqqqqqqq", "`dtdebug learn` lists all"),
        ("\x1b[31m", "`dtdebug learn` lists all"),
    ],
)
def test_an_unknown_topic_is_one_line_with_the_nearest(said, hint):
    """Status 2; nothing of what was typed reaches the terminal raw."""
    status, out, error = dtdebug("learn", said)
    assert (2, "", f"dtdebug: learn: {said!r} is no topic; {hint}\n") == (status, out, error)


def test_too_many_words_are_one_line():
    """Status 2."""
    assert (2, "", "dtdebug: learn: one NAME and one DIR at most, not 4 words\n") == dtdebug("learn", *"abcd")


# What is shown


def test_the_list_names_notebooks_and_topics_with_their_counts():
    """Notebooks first, then the most asked; in communication its six parts."""
    status, out, _ = dtdebug("learn")
    asked = re.findall(r"^ *- +(\d+) `([\w-]+)`", out, re.MULTILINE)
    assert (0, [one.id for one in notebooks.list_notebooks()]) == (
        status,
        re.findall(r"^\d\. `([\w-]+)`", out, re.MULTILINE),
    )
    assert [("140", "communication"), ("35", "algorithm")] == asked[:2]
    assert {*TOPICS, "communication"} == {name for _, name in asked}


@pytest.mark.parametrize("name", TOPICS)
def test_a_guide_names_its_source_and_where_to_go_on(name):
    """Count with citation, what `explain` and `lab` have on it, references."""
    topic, text = TOPICS[name], pages.answer_page([name], "%dtdebug")
    assert text.startswith(
        f"# {topic.title}\n\nAsked in {topic.question_count} of 494 how-to questions in TOSEM'23 (https://"
    )
    wanted = [*(f"`%dtdebug explain {code}`" for code in (*topic.symptoms, *topic.checks))]
    wanted += [*(f"`dtdebug lab start {lab}`" for lab in topic.labs), *(reference.url for reference in topic.reference)]
    assert [] == [part for part in wanted if part not in text]


def test_a_group_of_topics_lists_them():
    """`learn communication` leads to its parts."""
    _, out, _ = dtdebug("learn", "communication")
    assert [topic.name for topic in topics.groups()[0].topics] == re.findall(r"`dtdebug learn ([\w-]+)`", out)


def test_json_has_the_promised_keys():
    """For the list, a topic, a group, a notebook."""

    def record(*words):
        return json.loads(dtdebug("learn", *words, "--format", "json")[1])

    everything, topic, group = record(), record("backends"), record("communication")
    row = {"name", "group", "title", "gist", "asked"}
    assert {"study", "questions", "topics", "notebooks"} == set(everything)
    assert (row, 494) == (set(everything["topics"][0]), sum(one["asked"] for one in everything["topics"]))
    assert row | {"symptoms", "checks", "labs", "references", "programs", "markdown"} == set(topic)
    assert ["backends.py"] == [program["file"] for program in topic["programs"]]
    assert {"group", "asked", "topics", "markdown"} == set(group)
    assert everything["notebooks"][0] == record(everything["notebooks"][0]["id"])


def test_json_writes_no_files(tmp_path):
    """One of both at a time."""
    status, out, error = dtdebug("learn", "backends", str(tmp_path), "--format", "json")
    written = [path for path in tmp_path.iterdir() if path.name != "state"]  # what is kept is there
    assert (2, "", []) == (status, out, written)
    assert "writes no files" in error


def test_torch_is_not_needed_to_read():
    """Where torch can't be imported, lists and guides are the same; nothing tries to import it."""
    without = "sys.modules['torch'] = None"
    for words in ([], ["backends"], ["communication"], ["backends", "--format", "json"]):
        assert dtdebug("learn", *words) == dtdebug("learn", *words, before=without)


@pytest.mark.terminal
def test_in_a_terminal_a_guide_is_rendered():
    """Headings without their marks, code in colours."""
    child = pexpect.spawn(
        sys.executable, ["-m", "dtdebug", "learn", "communication/backends"], timeout=LIMIT, encoding="utf-8",
        dimensions=(60, 100), env={**os.environ, "TERM": "xterm-256color"},
    )  # fmt: skip
    try:
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)
    assert (0, True, False) == (child.exitstatus, "\x1b[" in child.before, "## In short" in child.before)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", child.before)
    assert "Usual mistakes" in plain


def test_a_pipe_gets_plain_markdown():
    """The same as is asked for with --format markdown; no colours."""
    status, out, _ = dtdebug("learn", "backends")
    assert (0, out, "") == dtdebug("learn", "backends", "--format", "markdown")
    assert (0, True, False) == (status, out.startswith("# NCCL, gloo"), "\x1b" in out)


@pytest.mark.ipython
def test_in_a_notebook_a_guide_is_markdown(tmp_path, monkeypatch):
    """`%dtdebug learn`, with a topic, with a folder, with a name that is none."""
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shell = InteractiveShell.instance()

    def learn(words):
        with capture_output() as captured:
            shell.run_line_magic("dtdebug", f"learn {words}")
        return captured.stdout, [output.data["text/markdown"] for output in captured.outputs]

    try:
        shell.run_line_magic("load_ext", "dtdebug")
        (everything,), (guide,) = learn("")[1], learn("Device usage")[1]
        (written,) = learn(f"backends '{tmp_path / 'two words'}'")[1]
        wrong, nothing = learn("bakends")
        shell.run_line_magic("unload_ext", "dtdebug")
    finally:
        InteractiveShell.clear_instance()
    assert "`%dtdebug learn NAME`" in everything
    assert guide.startswith(f"# {TOPICS['device-usage'].title}")
    assert (True, ["backends.py"]) == ("torchrun" in written, [p.name for p in (tmp_path / "two words").iterdir()])
    assert ("dtdebug: learn: 'bakends' is no topic; near: backends\n", []) == (wrong, nothing)


# What is written


def test_programs_of_a_group_are_written_to_a_folder(tmp_path):
    """All of them, with their commands; the folder is made."""
    status, out, _ = dtdebug("learn", "communication", str(tmp_path / "new" / "one"))
    files = {snippet.file for topic in topics.groups()[0].topics for snippet in topic.snippets}
    assert (0, files) == (status, {path.name for path in (tmp_path / "new" / "one").iterdir()})
    assert "torchrun --standalone --nproc-per-node 2 ring.py\n" in out


def test_a_file_that_is_there_stays_as_it_is(tmp_path):
    """Then none is written; status 2 and one line."""
    (tmp_path / "spawn.py").write_text("my work")
    status, _, error = dtdebug("learn", "configuration", str(tmp_path))
    written = [path.name for path in tmp_path.iterdir() if path.name != "state"]
    assert (2, "my work", ["spawn.py"]) == (status, (tmp_path / "spawn.py").read_text(), written)
    assert (
        error == f"dtdebug: learn: {tmp_path / 'spawn.py'}: already exists and is left as it is; name another folder\n"
    )


@pytest.mark.parametrize("name", ["backends", "first-failure"])
def test_a_folder_that_cannot_be_made_is_one_line(tmp_path, name):
    """Status 2; the reason is the system's."""
    (tmp_path / "file").touch()
    status, out, error = dtdebug("learn", name, str(tmp_path / "file" / "below"))
    assert (2, "", 1) == (status, out, error.count("\n"))
    assert "can't be written: Not a directory" in error


def test_a_notebook_is_copied_and_never_overwritten(tmp_path):
    """By id or number; a second copy gets another name, and that is said."""
    first = notebooks.list_notebooks()[0]
    status, out, _ = dtdebug("learn", first.id, str(tmp_path))
    (tmp_path / first.file).write_text("my work")
    _, again, _ = dtdebug("learn", str(first.number), str(tmp_path))
    assert (0, str(tmp_path / first.file) in out) == (status, True)
    assert (2, "my work") == (len(list(tmp_path.iterdir())), (tmp_path / first.file).read_text())
    assert "already exists and is left as it is" in again


# Every program runs


def program(name):
    return pytest.param(name, id=name, marks=[pytest.mark.ranks, *([] if name in QUICK else [pytest.mark.labs])])


@pytest.mark.parametrize("name", [program(name) for name in PROGRAMS])
def test_program_of_a_guide_runs_as_its_first_line_says(name, tmp_path, request):
    """It ends well and prints; its own asserts say that it shows what the guide says."""
    if name not in QUICK and "labs" not in request.config.option.markexpr:
        pytest.skip("takes a minute for all programs: pytest -m labs")
    pytest.importorskip("torch")
    snippet = PROGRAMS[name]
    (tmp_path / name).write_text(snippet.code, encoding="utf-8")
    *given, tool = itertools.takewhile(lambda word: not word.startswith("-") and word != name, snippet.command)
    module = {"torchrun": ["-m", "torch.distributed.run"], "python": []}[tool]
    variables = {"OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}  # what is left behind goes with the test's folder
    variables |= dict(word.split("=", 1) for word in given)
    command = [sys.executable, *module, *snippet.command[len(given) + 1 :]]
    with (tmp_path / "output").open("w+", encoding="utf-8", errors="replace") as output:
        job = subprocess.Popen(
            command, cwd=tmp_path, env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
            stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
        try:
            with suppress(subprocess.TimeoutExpired):
                job.wait(LIMIT)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            job.wait(10)
        output.seek(0)
        text = output.read()
    assert job.returncode == 0, text[-3000:]
    assert re.search(r"\w", text)
