"""`make symptom`, `make check-rule` and `make message`: the files that they write, and that these work at once."""

import re
import shutil

import pytest

from dtdebug_taxonomy.dev import new_check, new_message
from dtdebug_taxonomy.dev.lint import problems
from dtdebug_taxonomy.dev.new_symptom import main
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import HOME, load, read_record
from dtdebug_taxonomy.knowledge.schema import MessageFile
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.explain import explain, index
from dtdebug_taxonomy.text.pattern_matcher import problem_of

NAME = "fans-are-loud"
WORDS = "The fans of every node grow loud, then the whole training job is gone."


@pytest.fixture
def home(tmp_path):
    """A copy of the knowledge that may be changed."""
    copy = tmp_path / "knowledge"
    shutil.copytree(HOME, copy, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    return copy


@pytest.fixture
def recorded(tmp_path):
    """An empty folder of samples."""
    folder = tmp_path / "samples"
    folder.mkdir()
    return folder


def fill(path):
    """Takes the examples out of their comments and writes the texts that must not be empty."""
    text = re.sub(r"(?m)^# ", "", path.read_text())
    summary = "Fans are heard from each node. Then nothing is left of the job, whatever it was doing before."
    path.write_text(text.replace('summary = ""', f'summary = "{summary}"'))


def to_be_written(home, recorded, code="X.1"):
    """What tidy says about one symptom."""
    return [p for p in problems(load(home), recorded, frozenset({code})) if NAME in p]


def test_an_empty_skeleton_loads_and_tidy_says_what_to_write(home, recorded):
    """The knowledge stays usable while the symptom is being written."""
    main([NAME], home, recorded)
    text = "\n".join(to_be_written(home, recorded))

    for part in ("summary", "too few causes", "two references", "`says`", "observed", "samples from 3"):
        assert part in text
    assert len(text.splitlines()) == 6, text


def test_the_keys_stand_in_the_order_of_the_model(home, recorded):
    """The skeleton reads like the other files."""
    main([NAME], home, recorded)
    fill(home / "symptoms" / f"{NAME}.toml")
    text = (home / "symptoms" / f"{NAME}.toml").read_text()
    keys = list(dict.fromkeys(re.findall(r"(?m)^(?:\[+)?(\w+)", text)))
    order = [f for f in load(home).symptom(NAME).__struct_fields__ if f != "id"]

    assert order == [k for k in keys if k in order]


def test_filled_as_the_comments_say_only_quantity_is_missing(home, recorded):
    """The examples in the comments are valid and belong together."""
    main([NAME], home, recorded)
    fill(home / "symptoms" / f"{NAME}.toml")

    assert [
        f"symptoms/{NAME}.toml: at least two references",
        f"symptoms/{NAME}.toml: at least 8 sentences in `says`",
        f"symptoms/{NAME}.toml: samples from 3 frameworks, found ['torch']",
    ] == to_be_written(home, recorded)


def test_a_complete_symptom_outside_the_study_is_tidy_and_found(home, recorded):
    """It is ranked, explained and listed like a published one, and takes nothing from the others' order."""
    main([NAME], home, recorded)
    path = home / "symptoms" / f"{NAME}.toml"
    fill(path)
    sentences = "".join(f'"{WORDS}",\n' for _ in range(8))
    reference = '[[reference]]\ntitle = "Another page"\nurl = "https://example.org/"\n'
    path.write_text(path.read_text().replace("says = [\n", f"says = [\n{sentences}", 1) + reference)
    printed = (recorded / NAME / "torch-example.txt").read_text()
    for framework in ("horovod", "keras"):
        (recorded / NAME / f"{framework}-example.txt").write_text(printed)
    knowledge = load(home)
    d = diagnose(knowledge, Snapshot(output=printed, situation=WORDS))

    assert to_be_written(home, recorded) == []
    assert d.symptoms[0].id == NAME
    assert d.advice[0].cause == "one-concrete-thing"
    assert sum(s.probability for s in d.symptoms) == pytest.approx(1, abs=0.01)
    assert list(load().symptoms) == [code for code in knowledge.symptoms if code != "X.1"]
    assert "X.1" in index(knowledge)
    assert "not in TOSEM'23" in explain(knowledge, "x.1")


def test_an_unfilled_symptom_changes_no_diagnosis(home, recorded):
    """Without evidence the small prior keeps it at the end."""
    main([NAME], home, recorded)
    printed = Snapshot(output="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    before, after = diagnose(load(), printed), diagnose(load(home), printed)

    assert before.symptoms[0].id == after.symptoms[0].id
    assert before.symptoms[0].probability == pytest.approx(after.symptoms[0].probability, abs=0.01)


def test_each_new_symptom_gets_the_next_code(home, recorded):
    """Codes of the study are never taken."""
    main([NAME], home, recorded)
    main(["lights-are-dim"], home, recorded)

    assert list(load(home).symptoms)[-2:] == ["X.1", "X.2"]


def test_it_says_what_to_do_next(home, recorded, capsys):
    """Status 0, the paths that were written, and the next commands."""
    assert main([NAME], home, recorded) == 0
    out = capsys.readouterr().out

    for part in (f"{NAME}.toml", f"{NAME}/torch-example.txt", "make tidy", "pytest tests/taxonomy/diagnosis"):
        assert part in out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "make symptom NAME="),
        ("Loud Fans", "lower-case words"),
        ("../fans", "lower-case words"),
        ("fans-", "lower-case words"),
        ("f" * 61, "at most 60"),
        ("hang", "already exists"),
    ],
)
def test_a_bad_name_is_one_line_and_writes_nothing(home, recorded, capsys, name, words):
    """Status 2: no name, no kebab-case, too long, a symptom that exists."""
    before = sorted(home.rglob("*"))

    assert main([name], home, recorded) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert len(told.err.splitlines()) == 1
    assert told.out == ""
    assert before == sorted(home.rglob("*"))
    assert list(recorded.iterdir()) == []


def test_samples_of_that_name_are_left_alone(home, recorded, capsys):
    """A folder that somebody has begun is not written over."""
    (recorded / NAME).mkdir()

    assert main([NAME], home, recorded) == 2
    assert "already exists" in capsys.readouterr().err
    assert not (home / "symptoms" / f"{NAME}.toml").exists()


def test_outside_the_repository_it_says_where_to_run(home, tmp_path, capsys):
    """Without the folder of samples nothing is written."""
    assert main([NAME], home, tmp_path / "nowhere") == 2
    assert "root of the repository" in capsys.readouterr().err
    assert not (home / "symptoms" / f"{NAME}.toml").exists()


def test_a_folder_that_cannot_be_written_is_one_line(home, recorded, capsys):
    """A path that is no folder stands in for a full or read-only disk, which root would not notice."""
    shutil.rmtree(home / "symptoms")

    assert main([NAME], home, recorded) == 2
    assert "can't be written" in capsys.readouterr().err


def test_a_new_check_gets_the_next_free_id_of_its_group(tmp_path, capsys):
    (tmp_path / "dt501_taken").mkdir()

    folder = new_check.scaffold("sampler-seed-per-rank", "5", tmp_path)

    assert "dt502_sampler_seed_per_rank" == folder.name
    assert {"check.toml", "check.py", "doc.md", "bad_1.py", "good_1.py", "near_miss_1.py"} == {
        f.name for f in folder.iterdir()
    }
    assert "# dt: DT502" in (folder / "bad_1.py").read_text()
    compile((folder / "check.py").read_text(), "check.py", "exec")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name what is wrong"),
        (["Bad Name", "1"], "name what is wrong"),
        (["sampler-seed", "x"], "GROUP=x"),
        (["collective-under-rank-guard", "1"], "already exists"),
    ],
)
def test_a_wrong_name_of_a_check_is_one_line(arguments, words, capsys):
    assert 2 == new_check.main(arguments)
    assert words in capsys.readouterr().err


LINE = "[rank3]: RuntimeError: Gloo can't open device 'eth7' of /sys/class/net: 12 sockets refused (errno=13)"


def test_a_new_message_is_recognised_at_once(home, recorded, capsys):
    """The entry goes to the file of its neighbours and answers the sample; tidy asks for the source alone."""
    assert new_message.main([LINE], home, recorded) == 0
    out = capsys.readouterr().out
    (sample,) = recorded.rglob("*.txt")
    file = home / "messages" / "gloo.toml"
    entry = read_record(file, MessageFile).evidence[-1]

    assert entry.id == sample.stem
    assert sample.parent.name in {s.id for s in load().symptoms.values()}
    assert entry.symptoms
    assert not problem_of(entry.text[0])
    for words in (LINE, LINE.replace("eth7", "ib0").replace("12", "9").replace("/sys/class/net", "/tmp/x")):
        assert re.search(entry.text[0], words)
    assert f"first symptom: {sample.parent.name}\n" in out
    assert "TODO" not in out
    assert [f"messages/gloo.toml: evidence {entry.id}: cite where the message is printed"] == [
        p for p in problems(new_message._with(load(home), file), recorded) if entry.id in p
    ]


def test_a_line_of_any_length_and_kind_gives_a_pattern_that_may_be_used():
    """Quotes, braces, addresses and long lines."""
    for text in (
        "can't find {rank} in 'a b' at 0x7ffe12 of [::1]:29500 (a|b)*",
        "ValueError: " + "a word and another one " * 15,
        "no space left on /a/b/c.pt, 1.5 GB of 2 GB",
    ):
        pattern = new_message._pattern(text)
        assert not problem_of(pattern)
        assert len(pattern) <= 200
        assert "'" not in pattern
        assert re.search(pattern, text)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "make message TEXT="),
        (["two words that stand\non two lines"], "one line"),
        (["\x1b[31mred words of a terminal"], "plain text"),
        (["w" * 501], "shorten it"),
        (["failed"], "too few words"),
        (["CUDA out of memory. Tried to allocate 2.00 GiB"], "known already as mem-torch-device-oom"),
        ([LINE, "nowhere"], "FILE=nowhere: no such file; one of"),
    ],
)
def test_a_line_that_is_no_new_message_is_one_line_and_writes_nothing(home, recorded, capsys, arguments, words):
    """Status 2: nothing given, not one line, too long, too short, known, an unknown file."""
    before = {f: f.read_bytes() for f in home.rglob("*.toml")}

    assert new_message.main(arguments, home, recorded) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert len(told.err.splitlines()) == 1
    assert told.out == ""
    assert before == {f: f.read_bytes() for f in home.rglob("*.toml")}
    assert list(recorded.iterdir()) == []
