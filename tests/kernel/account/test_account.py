"""The account of a failure: the refused value, the way back to its line, and nothing of the user's is run."""

import importlib.util
import itertools
import linecache
import signal
import subprocess
import sys
import threading

import msgspec
import pytest
from places import TESTS

from dtdebug.account.capture import capture
from dtdebug.account.printed import with_accounts
from dtdebug.storage.last_failure import LastFailure
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.account import MAX_LINKS, MAX_TEXT, Account
from dtdebug_taxonomy.model.snapshot import Excerpt, Snapshot
from dtdebug_taxonomy.presentation.answer import build_answer

BENCH = importlib.util.spec_from_file_location("bench_account", TESTS.parent / "benchmarks" / "account.py")
bench = importlib.util.module_from_spec(BENCH)
sys.modules["bench_account"] = bench
BENCH.loader.exec_module(bench)
PROGRAMS = TESTS / "accounts"
TRACE = BaseException.__dict__["__traceback__"]


def fail(tmp_path, text, name="train.py", **given):
    """Run a program from a file in this process, and return what it raises."""
    path = tmp_path / name
    path.write_text(text)
    space = {"__name__": "__main__", "__file__": str(path), **given}
    try:
        exec(compile(text, str(path), "exec"), space)
    except BaseException as error:
        TRACE.__set__(error, TRACE.__get__(error).tb_next)
        return error
    raise AssertionError("it did not fail")


def account(tmp_path, text, **given):
    return capture(fail(tmp_path, text, **given), seconds=5)


def rows(found):
    return [(link.value.name, link.value.text, link.how, link.place.line) for link in found.links]


def root(found):
    return found.links[found.root].place.code if found.root >= 0 else found.stopped


# The way back


def test_argument_is_followed_to_the_literal_that_decides_it(tmp_path):
    """A parameter leads to the caller's argument, that to its assignment."""
    found = account(
        tmp_path, "def take(n):\n    return [1, 2][n]\n\ndef run(k):\n    return take(k)\n\nsize = 5\nrun(size)\n"
    )
    assert rows(found) == [
        ("n", "5", "passed", 5),
        ("k", "5", "passed", 8),
        ("size", "5", "literal", 7),
    ]
    assert (found.root, found.place.line, found.place.function, found.stopped) == (2, 2, "take", "")
    assert found.exception == "IndexError: list index out of range"


def test_option_default_and_environment_are_ends(tmp_path, monkeypatch):
    """Where an option, a default or a variable decides, the way back ends there."""
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.setenv("PARTS", "7")
    option = (
        "import argparse\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('--at', type=int, default=3)\n"
        "a = p.parse_args()\n"
        "[1][a.at]\n"
    )
    assert root(account(tmp_path, option)) == "p.add_argument('--at', type=int, default=3)"
    default = "def pick(rows, at=4):\n    return rows[at]\npick([1])\n"
    assert root(account(tmp_path, default)) == "def pick(rows, at=4):"
    variable = "import os\nat = int(os.environ['PARTS'])\n[1][at]\n"
    found = account(tmp_path, variable)
    assert rows(found)[0] == ("at", "7", "environment", 2)
    assert found.root == 0


def test_attribute_is_followed_into_the_class_and_to_where_the_object_was_made(tmp_path):
    """`self.x =` leads to the argument of `__init__`, a field of a data class to what it was given."""
    text = (
        "from dataclasses import dataclass\n@dataclass\nclass Plan:\n    at: int = 2\n    by: int = 1\n"
        "class Reader:\n    def __init__(self, plan):\n        self.at = plan.at\n"
        "    def read(self, rows):\n        return rows[self.at]\n"
        "reader = Reader(Plan(at=9))\nreader.read([1])\n"
    )
    found = account(tmp_path, text)
    assert ("self.at", "9", "attribute", 8) in rows(found)
    assert root(found) == "reader = Reader(Plan(at=9))"


def test_list_that_was_filled_leads_to_the_loop_that_filled_it(tmp_path):
    """An empty list says nothing: where it was filled does."""
    text = (
        "def make(n):\n"
        "    out = []\n"
        "    for i in range(n - 1):\n"
        "        out.append(i)\n"
        "    return out\n"
        "rows = make(3)\n"
        "rows[2]\n"
    )
    found = account(tmp_path, text)
    assert ("rows", "[0, 1]", "assigned", 6) in rows(found) or ("rows", "[0, 1]", "called", 6) in rows(found)
    assert any(link.place.line == 4 for link in found.links)


def test_value_of_a_name_that_was_bound_again_is_left_out(tmp_path):
    """A frame's values are those of now, not those of an earlier line."""
    found = account(tmp_path, "def f(x):\n    x = x + 1\n    x = x * 2\n    return [0][x]\nf(3)\n")
    assert [text for name, text, _, line in rows(found) if line in (2, 3)] == ["8", ""]
    assert ("x", "3", "literal", 5) in rows(found)


def test_branches_that_exclude_the_line_do_not_count(tmp_path):
    """Of two assignments in the branches of one `if`, the one of the line's branch is told."""
    text = "big = True\nif big:\n    n = 5\n    [0][n]\nelse:\n    n = 0\n"
    assert root(account(tmp_path, text)) == "n = 5"


def test_comprehension_closure_and_lambda_find_the_function_around(tmp_path):
    """Names of the function around a comprehension or an inner function are followed there."""
    text = (
        "def outer(width):\n"
        "    def inner(rows):\n"
        "        return [row[width] for row in rows]\n"
        "    return inner\n"
        "outer(6)([[1]])\n"
    )
    found = account(tmp_path, text)
    assert any(link.value.text == "6" for link in found.links)
    found = account(tmp_path, "n = 4\nf = lambda rows: rows[n]\nf([1])\n")
    assert root(found) == "n = 4"


def test_other_module_of_the_program_is_read(tmp_path, monkeypatch):
    """A name that is imported from a file beside the program is followed there."""
    (tmp_path / "settings_of_job.py").write_text("BATCH = 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = account(tmp_path, "from settings_of_job import BATCH\nprint(12 // BATCH)\n")
    assert (found.links[found.root].place.code, found.links[0].value.text) == ("BATCH = 0", "0")
    sys.modules.pop("settings_of_job", None)


def test_thread_started_with_arguments_leads_to_its_start(tmp_path):
    """A function that a thread runs has no caller of the program: its start has the arguments."""
    caught = []
    monkey = threading.excepthook
    threading.excepthook = lambda args: caught.append(args.exc_value)
    try:
        path = tmp_path / "train.py"
        text = (
            "import threading\n"
            "def fill(at):\n"
            "    [0][at]\n"
            "t = threading.Thread(target=fill, args=(8,))\n"
            "t.start()\n"
            "t.join()\n"
        )
        path.write_text(text)
        exec(compile(text, str(path), "exec"), {"__name__": "__main__"})
    finally:
        threading.excepthook = monkey
    found = capture(caught[0], seconds=5)
    assert root(found) == "t = threading.Thread(target=fill, args=(8,))"


# What was refused


def test_guard_of_a_library_is_told_with_the_way_it_went(tmp_path):
    """The tests over a raise are the refusal; their operands have values."""
    found = account(tmp_path, "import textwrap\nw = 0\ntextwrap.wrap('a b', w)\n")
    assert found.refusal.api == "textwrap.wrap"
    assert ("self.width <= 0", True) in found.refusal.tests
    assert ("self.width", "0") in [(v.name, v.text) for v in found.refusal.values]
    assert ("width", "0") in [(v.name, v.text) for v in found.refusal.arguments]
    assert found.refusal.place.file.endswith("textwrap.py")
    assert root(found) == "w = 0"


def test_own_test_is_a_guard_too(tmp_path):
    """An `assert` or `raise` of the program itself has its test; an `elif` has those before it."""
    found = account(
        tmp_path, "def f(n):\n    if n == 1:\n        return\n    elif n < 4:\n        raise ValueError(n)\nf(3)\n"
    )
    assert found.refusal.tests == (("n < 4", True), ("n == 1", False))
    found = account(tmp_path, "n = 3\nassert n % 2 == 0, 'odd'\n")
    assert found.refusal.tests == (("n % 2 == 0", False),)


# Chains, and what can't be read


def test_cause_is_what_happened(tmp_path):
    """Of `raise ... from`, the first exception is told; of a group, its first member."""
    text = (
        "def f(d):\n"
        "    try:\n"
        "        return d['lr']\n"
        "    except KeyError as e:\n"
        "        raise RuntimeError('no rate') from e\n"
        "f({'rate': 1})\n"
    )
    found = account(tmp_path, text)
    assert (found.exception, found.place.line) == ("KeyError: 'lr'", 3)
    assert ("d", "{'rate': 1}") in [(v.name, v.text) for v in found.refusal.values]
    assert any(link.place.line == 6 for link in found.links)  # beyond the `try`
    group = (
        "def g():\n"
        "    [0][7]\n"
        "try:\n"
        "    g()\n"
        "except IndexError as e:\n"
        "    kept = e\n"
        "raise ExceptionGroup('two', [kept])\n"
    )
    assert account(tmp_path, group).exception == "IndexError: list index out of range"


def test_line_at_which_a_signal_arrived_is_not_blamed(tmp_path):
    """A handler that raises has interrupted some line: that line decided nothing."""
    text = "import os, signal\ndef on(number, frame):\n    raise RuntimeError()\nsignal.signal(signal.SIGUSR1, on)\n"
    before = signal.getsignal(signal.SIGUSR1)
    try:
        found = account(tmp_path, text + "x = 5\nos.kill(os.getpid(), signal.SIGUSR1)\nprint(x)\n")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert found.place is None
    assert not found.links
    assert "signal" in found.stopped


def test_file_that_changed_since_is_not_read(tmp_path):
    """Lines of another version would be false."""
    error = fail(tmp_path, "n = 5\n[0][n]\n")
    (tmp_path / "train.py").write_text("import sys\n[0][len(sys.argv) + 99]\n")
    linecache.checkcache()
    found = capture(error, seconds=5)
    assert "has changed since it was loaded" in found.stopped
    assert not found.links


def test_code_without_source_gives_what_is_certain():
    """Generated code has no lines to show; the exception is told all the same."""
    try:
        exec(compile("[0][5]", "<made>", "exec"), {})
    except IndexError as error:
        found = capture(error.with_traceback(error.__traceback__.tb_next))
    assert (found.exception, found.links) == ("IndexError: list index out of range", ())
    assert found.stopped


def test_deep_recursion_and_large_values_are_bounded(tmp_path):
    """Ten thousand frames and a list of a million entries take no longer, and no more text."""
    text = (
        "import sys\n"
        "sys.setrecursionlimit(9000)\n"
        "rows = list(range(10**6))\n"
        "def f(n):\n"
        "    return f(n + 1) if n < 4000 else rows['x' * 5000]\n"
        "f(0)\n"
    )
    limit = sys.getrecursionlimit()
    try:
        found = account(tmp_path, text)
    finally:
        sys.setrecursionlimit(limit)
    assert len(found.links) <= MAX_LINKS
    assert all(len(v.text) <= MAX_TEXT for v in (*found.refusal.values, *(link.value for link in found.links)))
    assert len(msgspec.json.encode(found)) < 20_000


def test_secrets_are_masked(tmp_path):
    """A value whose name says that it is secret, and a token in a line, are not kept."""
    text = (
        "api_key = 'sk-Zz81kqPw0aLm39xTf7'\n"
        "settings = {'password': 'hunter2hunter2', 'at': 3}\n"
        "def f(api_key, settings):\n"
        "    return [0][settings[api_key]]\n"
        "f(api_key, settings)\n"
    )
    said = msgspec.json.encode(account(tmp_path, text)).decode()
    assert "Zz81kqPw0aLm39xTf7" not in said
    assert "hunter2hunter2" not in said


# Hostile objects

RAN = []
METHODS = (
    *(
        "__repr__",
        "__str__",
        "__len__",
        "__getattr__",
        "__getattribute__",
        "__eq__",
        "__hash__",
        "__bool__",
        "__iter__",
    ),
    *("__getitem__", "__contains__", "__format__", "__int__", "__index__", "__float__", "__dir__", "__lt__", "__add__"),
    *("__sizeof__", "__reduce__", "__array__", "__torch_function__", "__next__", "__enter__", "__get__", "__copy__"),
)
PROPERTIES = ("__class__", "__dict__", "__doc__", "__module__", "shape", "dtype", "device", "name", "dataset", "module")


def _method(name):
    def run(*arguments, **named):
        RAN.append(name)
        raise SystemExit(name)

    return run


def hostile_classes():
    """Classes of which one method each runs away, on several bases, and classes of such metaclasses."""
    for base, name in itertools.product((object, dict, list, tuple, str, int, Exception), METHODS):
        yield type(f"H{base.__name__}{name}", (base,), {name: _method(name)})
    for name in PROPERTIES:
        yield type(f"P{name}", (), {name: property(_method(name))})
    for name in ("__getattribute__", "__eq__", "__hash__", "__repr__", "__instancecheck__", "__subclasscheck__"):
        meta = type(f"M{name}", (type,), {name: _method(name)})
        yield type.__new__(meta, f"C{name}", (), {})
    for name in ("__mro__", "__name__", "__dict__", "__class__", "__module__"):
        meta = type(f"M{name}", (type,), {name: property(_method(name))})
        yield type.__new__(meta, f"C{name}", (), {})


HOSTILE = """
def use(thing, table, kind):
    held = thing
    rows = [held, table, kind]
    return rows[held.width if kind is None else 9]
def run(thing):
    return use(thing, {"thing": thing, "n": 1}, type)
class Holder:
    pass
holder = Holder()
holder.__dict__["thing"] = thing
holder.__dict__["width"] = 3
run(holder.thing)
"""


def test_hostile_classes_are_never_run(tmp_path):
    """Values whose classes do anything in `__repr__`, `__eq__`, `__class__` or a metaclass are only named."""
    made = 0
    for kind in hostile_classes():
        try:
            thing = object.__new__(kind) if kind.__mro__[-2] is kind else kind.__mro__[-2].__new__(kind)
        except BaseException:
            thing = kind
        error = fail(tmp_path, HOSTILE, thing=thing)
        RAN.clear()
        found = capture(error, seconds=5)
        assert RAN == [], kind
        assert "can't be read" not in found.stopped
        assert found.links
        made += 1
    assert made >= 150


def test_hostile_exceptions_are_never_run(tmp_path):
    """Neither the text nor the attributes of an exception are asked for."""
    for name in ("__str__", "__repr__", "__getattribute__", "__eq__", "__getattr__"):
        kind = type("Bad", (ValueError,), {name: _method(name)})
        error = fail(tmp_path, "n = 3\ndef f(n):\n    raise Bad(n)\nf(n)\n", Bad=kind)
        RAN.clear()
        found = capture(error, seconds=5)
        assert RAN == []
        assert found.exception.startswith("test_account.Bad") or "Bad" in found.exception
        assert ("n", "3", "literal", 1) in rows(found)


def test_dictionaries_with_hostile_keys_are_not_searched_by_them(tmp_path):
    """A key that claims to have the hash of a name is not compared with it."""
    made = type("Key", (), {"__hash__": lambda self: hash("lr"), "__eq__": _method("__eq__")})()
    error = fail(
        tmp_path, "d = {key: 1}\ndef f(d):\n    return [0][d['rate' if 0 else 'n']]\nd['n'] = 7\nf(d)\n", key=made
    )
    RAN.clear()
    found = capture(error, seconds=5)
    assert RAN == []
    assert found.links


def test_what_each_rank_has_of_its_own_is_found_on_the_way_back(tmp_path, monkeypatch):
    """The line at which the rank, chance or a test of the rank comes into a value; the world's size is no such."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    start = "import os, random\nrank = int(os.environ['RANK'])\nworld = int(os.environ['WORLD_SIZE'])\n"
    for made, line in (
        ("rows = list(range(9))\nmine = rows[rank::world]\n", "mine = rows[rank::world]"),
        ("mine = [0] * random.randint(2, 5)\n", "mine = [0] * random.randint(2, 5)"),
        ("mine = [0]\nif rank == 1:\n    mine = [0, 1]\n", "mine = [0, 1]"),
        ("mine = [0] * world\n", ""),
    ):
        found = account(tmp_path, f"{start}{made}def take(part):\n    return part[99]\ntake(mine)\n")
        at = found.links[found.by_rank].place.code if found.by_rank >= 0 else ""
        assert at == line, rows(found)


def test_content_of_a_file_is_followed_to_the_line_that_wrote_it(tmp_path):
    """A file that the program wrote itself leads on to what was put into it."""
    found = account(
        tmp_path,
        "import json, os\npath = os.path.join(os.path.dirname(__file__), 'state.json')\n"
        "def save(epoch):\n    content = {'epochs': epoch}\n"
        "    with open(path, 'w') as f:\n        json.dump(content, f)\n"
        "save(3)\nwith open(path) as f:\n    loaded = json.load(f)\nloaded['epoch']\n",
    )
    assert ("content", "", "file", 6) in rows(found)
    assert root(found) == "content = {'epochs': epoch}"


def test_attributes_filled_in_a_loop_and_methods_of_own_objects_are_entered(tmp_path):
    """A table that begins empty leads to what fills it; a number from a method leads to its return."""
    found = account(
        tmp_path,
        "class Table:\n    def __init__(self, names):\n        self.sizes = {}\n        for name in names:\n"
        "            self.sizes[name.lower()] = 1\n    def size(self, name):\n        return self.sizes[name]\n"
        "Table(['A']).size('A')\n",
    )
    assert ("self.sizes", "{'a': 1}", "attribute", 5) in rows(found)
    found = account(
        tmp_path,
        "class Settings:\n    def every(self, world):\n        return 4 // (world * 8)\n"
        "settings = Settings()\nevery = settings.every(2)\nprint(5 % every)\n",
    )
    assert root(found) == "return 4 // (world * 8)"


KEPT = """class Config:
    def __init__(self, parts):
        self.parts = parts


class Shards:
    def __init__(self, rows, config, limit):
        self.config = config
        limit = limit + 1
        self.limit = limit
        self.size = len(rows) // config.parts

    def own(self, rank):
        return range(rank * self.size, (rank + 1) * self.size)

    def pick(self, rows, at):
        return rows[self.own(at)[self.limit]]


shards = Shards([1, 2, 3, 4], Config(4), 7)
shards.pick([1, 2, 3, 4], 0)
"""


def test_values_that_an_object_keeps_are_told_in_functions_that_have_returned(tmp_path):
    """The object of a method, and a parameter of `__init__` that it keeps as it was; not one that was bound again."""
    told = {(name, line): text for name, text, _, line in rows(account(tmp_path, KEPT))}
    assert "1" == told["self.size", 11]
    assert "4" == told["config.parts", 3]
    assert "7" == told["limit", 20]


def test_a_word_that_the_library_would_take_is_not_the_one_it_refuses(tmp_path):
    text = (
        'MODES = {"slow": {"mode": "no"}, "fast": {"mode": "bfloat16"}}\n\n'
        "def check(mode):\n    if mode not in {'no', 'bf16'}:\n"
        "        raise ValueError(f\"Unknown mode: {mode}. Choose between ['no', 'bf16']\")\n\n"
        'check(MODES["fast"]["mode"])\n'
    )
    assert "'no'" not in {text for _, text, _, _ in rows(account(tmp_path, text))}


# Real programs

EXPECTED = bench.expected_of(PROGRAMS)


@pytest.mark.ranks
@pytest.mark.parametrize("name", list(EXPECTED))
def test_program_has_the_line_of_the_mistake_and_its_values(name):
    """Each failing program's account, as its rank's agent records it, holds the wrong line and the values."""
    expected = EXPECTED[name]
    found, printed = bench.accounts_of(PROGRAMS / f"{name}.py", expected)
    assert found, printed[-2000:]
    best = max(bench.score(each, expected) for each in found)
    assert best.line, list(bench.describe(found[0]))
    assert best.values, list(bench.describe(found[0]))
    assert all(isinstance(each, Account) for each in found)
    if expected.fix:
        assert expected.fix in added_by_diff(PROGRAMS / f"{name}.py", found, printed)


def added_by_diff(program, accounts, printed):
    """Return the lines that the diff of the answer adds."""
    files = [each for each in (program, program.with_suffix(".yaml")) if each.exists()]
    excerpts = tuple(Excerpt(file=str(f), first=1, lines=tuple(f.read_text().splitlines())) for f in files)
    snapshot = Snapshot(output=printed, accounts=accounts, excerpts=excerpts)
    answer = build_answer(diagnose(load(), snapshot), snapshot)
    rows = answer.fix.diff.splitlines() if answer.fix is not None else []
    return [row[1:].strip() for row in rows if row.startswith("+")]


@pytest.mark.ranks
def test_run_keeps_the_account_of_a_rank_and_the_output_as_it_is(tmp_path, monkeypatch):
    """`dtdebug run` stores the account of a rank that failed; traceback and exit status are the job's own."""
    monkeypatch.setenv("DTDEBUG_STATE", str(tmp_path / "state"))
    program = str(PROGRAMS / "scatter_parts.py")
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", program]
    command = [sys.executable, "-m", "dtdebug", "run", "--", *launch]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert 'scatter_parts.py", line 25' in done.stderr
    accounts = LastFailure.load().snapshot.accounts
    first = next(each for each in accounts if each.rank == 0)
    assert root(first).startswith('parser.add_argument("--parts"')
    assert ("pieces", "list of 3") in [(link.value.name, link.value.text[:9]) for link in first.links]


@pytest.mark.ipython
def test_cell_that_fails_names_the_cell_that_made_the_value():
    """In a notebook the way back goes through the cells in the order in which they ran."""
    script = """
from IPython.core.interactiveshell import InteractiveShell
from dtdebug.account.capture import capture
from dtdebug.notebook.cells import Cells
shell = InteractiveShell.instance()
for cell in ("size = 3\\nrows = [0] * size", "size = 4", "rows[size]"):
    result = shell.run_cell(cell, store_history=True)
account = Cells(shell).rename_cells(capture(result.error_in_exec, seconds=5))
print([(l.value.name, l.value.text, l.how, l.place.file, l.place.line) for l in account.links])
"""
    command = [sys.executable, "-c", script.replace("\\\\", "\\")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    told = done.stdout.strip().splitlines()[-1]
    assert "('size', '4', 'literal', 'cell In[2]', 1)" in told
    assert "('size', '3', 'literal', 'cell In[1]', 1)" in told


# From text


def test_printed_traceback_gives_the_same_without_values(tmp_path):
    """From a log and the files on disk: the way back without values, and no line if the file has changed."""
    path = tmp_path / "train.py"
    path.write_text("def take(n):\n    return [1, 2][n]\n\ndef run(k):\n    return take(k)\n\nsize = 5\nrun(size)\n")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False)
    snapshot = with_accounts(Snapshot(output=done.stderr))
    (found,) = snapshot.accounts
    assert not found.with_values
    assert [(link.value.name, link.how, link.place.line) for link in found.links] == [
        ("n", "passed", 5),
        ("k", "passed", 8),
        ("size", "literal", 7),
    ]
    assert root(found) == "size = 5"
    path.write_text("import os\n" + path.read_text())
    (found,) = with_accounts(Snapshot(output=done.stderr)).accounts
    assert not found.links
    assert "has changed since" in found.stopped


def test_only_regular_files_of_bounded_size_are_read(tmp_path):
    """A log may name a pipe, a device or a folder: none is opened."""
    import os

    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "large.py").write_text("x = 1\n" * 500_000)
    for name in ("pipe.py", "folder.py", "large.py", "missing.py"):
        text = (
            f"Traceback (most recent call last):\n"
            f'  File "{tmp_path / name}", line 1, in <module>\n'
            f"    x = 1\n"
            f"ValueError: no\n"
        )
        for found in with_accounts(Snapshot(output=text)).accounts:
            assert not found.links
            assert found.stopped


# What chose the parameters of an optimizer

TWO_PHASES = """
import torch

def hold(layers):
    for weight in layers.parameters():
        weight.requires_grad_(False)

def make(net):
    large, small = [], []
    for name, weight in net.named_parameters():
        if not weight.requires_grad:
            continue
        (small if weight.ndim == 1 else large).append(weight)
    return torch.optim.SGD([{"params": large}, {"params": small}], lr=0.1)

def run(first):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    if first:
        hold(net[0])
    sgd = make(net)
    if not first:
        sgd.load_state_dict(run(True))
    return sgd.state_dict()

run(False)
"""


def test_filter_of_an_optimizer_and_the_test_that_freezes_are_found(tmp_path):
    """The sizes of both groups are worked out again: the library's generators are used up."""
    found = account(tmp_path, TWO_PHASES)
    values = {value.name: value.text for value in found.refusal.values}
    assert values == {"param_lens": "list of 2 x 2", "saved_lens": "list of 2 x 1"}
    tests = [row for row in rows(found) if row[2] == "tested"]
    assert tests == [("not weight.requires_grad", "", "tested", 11), ("first", "False", "tested", 18)]


def test_length_of_a_mapping_that_is_not_shown_whole_is_told(tmp_path):
    found = account(tmp_path, "names = {f'name {n}': n for n in range(30)}\nnames['no name']\n")
    assert found.links[0].value.text.startswith("dict of 30: {'name 0': 0")


def test_layer_that_is_called_comes_before_what_it_gets(tmp_path):
    """It made the value: the input of a loss has no part in its shape."""
    found = account(
        tmp_path,
        "import torch\n\nclass Task:\n    def __init__(self):\n"
        "        self.loss = torch.nn.MSELoss(reduction='none')\n\n"
        "    def step(self, x):\n        loss = self.loss(x, x)\n        loss.backward()\n\n"
        "data = torch.ones(3, requires_grad=True)\nTask().step(data)\n",
    )
    assert root(found) == "self.loss = torch.nn.MSELoss(reduction='none')"


UNUSED = """import os, tempfile
import torch
import torch.distributed as dist

class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = torch.nn.Linear(4, 4).requires_grad_(False)
        self.parts = torch.nn.ModuleDict({"tags": torch.nn.Linear(4, 5), "spans": torch.nn.Linear(4, 2)})

    def forward(self, x):
        return self.parts["tags"](self.frozen(x))

dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
try:
    model = torch.nn.parallel.DistributedDataParallel(Tagger())
    for _ in range(2):
        model(torch.ones(2, 4)).sum().backward()
finally:
    dist.destroy_process_group()
"""


def test_parameters_that_a_message_counts_are_named(tmp_path):
    found = account(tmp_path, UNUSED)
    values = {value.name: value.text for value in found.refusal.values}
    assert values["unused"] == "parts.spans.weight, parts.spans.bias"


def test_sizes_that_are_equal_on_both_sides_decide_nothing(tmp_path):
    """The message speaks of two shapes, but their difference is not what is refused."""
    text = """width = 8

import torch

def make():
    return torch.zeros(width, 8)

def load(weights):
    if type(weights) is torch.Tensor:
        raise RuntimeError(
            'parameter "layers.0.weight", whose dimensions in the model are torch.Size([8, 8]) and whose dimensions'
            f" in the checkpoint are torch.Size([{}, 8]), an exception occurred: mixed Tensor and DTensor"
        )

weights = make()
load(weights)
"""
    assert root(account(tmp_path, text.format(8))) != "width = 8"
    assert root(account(tmp_path, text.format(9))) == "width = 8"


def test_value_whose_type_is_refused_is_followed(tmp_path):
    """The layer that refused it takes a tensor, as it should."""
    found = account(
        tmp_path,
        "import torch\n\nlayer = torch.nn.Linear(4, 1)\n"
        "pairs = [(torch.ones(2, 4), torch.ones(2, 1))]\nfor batch in pairs:\n    layer(batch)\n",
    )
    assert (found.links[found.root].value.name, found.links[found.root].place.line) == ("batch", 5)


ENDED = """import tempfile
import torch
import torch.distributed as dist

def leave():
    print("done")
    dist.destroy_process_group()

def set_up():
    dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)

set_up()
{}
dist.all_reduce(torch.ones(1))
"""


@pytest.mark.parametrize("ends", ["dist.destroy_process_group()", "leave()"])
def test_what_has_destroyed_the_group_before_its_use_is_named(tmp_path, ends):
    """Here or in a function of the program; a set-up after it makes a new one."""
    first = account(tmp_path, ENDED.format(ends)).links[0]
    assert ("destroyed", ends, 13) == (first.how, first.place.code, first.place.line)


def test_parameters_are_not_frozen_by_a_function_that_nobody_calls(tmp_path):
    """Its lines speak of another model."""
    text = (
        "import torch\n\ndef freeze(other):\n    other.requires_grad_(False)\n\nweight = torch.ones(2)\n{}"
        "loss = weight.sum()\nloss.backward()\n"
    )
    for call, frozen in (("", False), ("freeze(weight)\n", True)):
        names = {link.value.name for link in account(tmp_path, text.format(call)).links}
        assert frozen == ("requires_grad" in names)
