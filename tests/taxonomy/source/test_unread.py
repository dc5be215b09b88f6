"""What of a file could not be read is reported with its lines; what can be read is, to the last line."""

from __future__ import annotations

import ast
import shutil
import subprocess
from collections.abc import Callable

import pytest

from dtdebug.cli import main
from dtdebug_taxonomy.checks.run.examine import examine
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source.kinds import parse_file
from dtdebug_taxonomy.source.python import lenient_parser
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.lenient_parser import parse_program
from dtdebug_taxonomy.source.shell.script import Script

PLANT = "export NCCL_DEBGU=INFO"
SCRIPTS = {
    "defaults": f'GPUS=${{1:-8}}\nARGS="${{@:2}}"\nOUT="${{2:-"a}}b"}}"\n{PLANT}\n',
    "default with quotes": f"A=\"${{1:-'it s'}}\" B=${{2:-'}}'}}\n{PLANT}\n",
    "default over lines": f"A=${{1:-\n  x\n}}\n{PLANT}\n",
    "pattern in braces": f"A=${{f%%\\}}*}} B=${{f##*/}} C=${{f//\\'/x}}\n{PLANT}\n",
    "defaults in defaults": f"A=${{A:-${{B:-${{C:-$(hostname)}}}}}}\n{PLANT}\n",
    "shift in a sum": f"(( n = 1 << 2 ))\nx=$(( (1 << 3) + (2 << 1) ))\n{PLANT}\n",
    "loop with a sum": f"for ((i = 0; i < 8; i++)); do\n{PLANT}\ndone\n",
    "test with less": f"if [[ $a < b && $x =~ ^(a|b)$ ]]; then\n{PLANT}\nfi\n",
    "case in a command": f'a=$(case "$1" in x) echo 1 ;; *) echo 2 ;; esac)\n{PLANT}\n',
    "case": f"case $1 in\n  -h | --help) exit ;;\n  (gpu)\n{PLANT}\n;;\n  *) ;;\nesac\n",
    "function": f"function setup {{ {PLANT}; }}\n",
    "function with brackets": f"setup() {{\n{PLANT}\n}}\n",
    "ANSI quotes": f"IFS=$'\\n' a=$'it\\'s'\n{PLANT}\n",
    "backticks": f"a=`echo \\`date\\``\n{PLANT}\n",
    "here-document": f"cat > x.txt <<'END OF IT'\n$( \" ` '\nEND OF IT\n{PLANT}\n",
    "two here-documents": f"diff <(cat <<A\nx\nA\n) - <<-B\n\ty\n\tB\n{PLANT}\n",
    "here-document of a shell": f"ssh node bash -s <<EOF\n{PLANT}\nEOF\n",
    "array": f'A=(\n  a # it\'s\n  "b c" $(ls)\n)\n{PLANT}\n',
    "array that grows": f"A+=(--x 'y z')\nrun ${{A[@]}} ${{#A[@]}} ${{!A[*]}}\n{PLANT}\n",
    "pattern": f"shopt -s extglob\nrm !(a|b)\n{PLANT}\n",
    "continuations": f"torchrun \\\n  --nproc-per-node ${{N:-8}} \\\n  train.py\n{PLANT}\n",
    "subshell": f"(cd a && {PLANT})\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_misspelt_variable_is_found_behind_all_that_shells_can_write(name):
    """The plant is found, nothing is reported as unread, and bash accepts the script too."""
    text = SCRIPTS[name]
    script = Script(text)
    (hit,) = examine(script, Settings(select=("DT901",)))
    assert script.text.place(hit.span.start).line == text[: text.index("NCCL_DEBGU")].count("\n") + 1
    assert script.unread == ()
    if shutil.which("bash"):
        done = subprocess.run(["bash", "-O", "extglob", "-n"], input=text.encode(), capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a=1\nb='x\nc=2\n", 2, "quote"),
        ('a=1\nb="x\nc=2\n', 2, "quote"),
        ("a=${b\nc=2\n", 1, "${"),
        ("a=1\na=$(b\nc=2\n", 2, "$("),
        ("cat <<EOF\ntext\n", 2, "EOF"),
        ("A=(a\nb\n", 1, "array"),
        ("[[ a == b\nc\n", 1, "[["),
        ("x\npython - <<P\nimport os\nP\n", 3, "Python"),
        ("a=" + "$(" * 30 + "x" + ")" * 30 + "\n", 1, "deep"),
    ],
)
def test_what_a_script_leaves_open_is_reported_with_its_first_line(text, line, why):
    """The line on which it begins and a reason are given."""
    script = Script(text)
    assert [why in u.why for u in script.unread][:1] == [True]
    assert script.text.place(script.unread[0].span.start).line == line


def test_lines_that_are_no_python_are_the_ones_that_are_reported():
    """A statement is left out as a whole; what is before and after it is in the tree."""
    parsed = parse_program('import a\n\nprint "x"\n\nif a:\n    b = = 1\n    c = 2\n')
    assert parsed.gaps == ((3, 3), (6, 6))
    assert not parsed.whole
    assert parse_program("if a:\n").gaps == ()


def test_yaml_behind_a_fault_is_reported():
    """The document with the fault is lost, and those after it."""
    source = parse_file("a.yaml", "a: 1\n---\nb: [1\n---\nc: 3\n")
    assert source is not None
    (part,) = source.unread
    assert "not valid YAML" in part.why
    assert source.text.place(part.span.start).line <= 3


def test_the_command_says_what_it_has_not_understood(tmp_path, capsys):
    """`nothing found` never stands alone where a part was not read."""
    (tmp_path / "run.sh").write_text("export A=1\ntorchrun --nproc_per_node 2 'train.py\n")
    assert main.main(["check", str(tmp_path)]) == 0
    said = capsys.readouterr().err
    assert "nothing found in what could be read of 1 file; 1 part not understood" in said
    assert "run.sh: line 2 not understood: a quote has no end" in said


@pytest.mark.parametrize(
    "piece", ["x=(", "$((", "((\n", "(", '"$(', "${a\n", "`a", "[[ a\n", "case x in a)\n", "if a; then\n"]
)
def test_what_is_opened_again_and_again_is_read_to_the_end(piece):
    """No recursion without a bound; what is left open is reported where that loses text."""
    script = Script(piece * 3000 + "\n")
    assert all(c.depth <= 21 and c.branch <= 200 for c in script.commands)
    assert all(0 <= u.span.start <= u.span.end <= len(script.text) for u in script.unread)


@pytest.mark.parametrize(
    "costly",
    [
        lambda n: "from " + ".".join(["a"] * n) + " import d",
        lambda n: "import x, " + ".\\\n".join(["a"] * n),
        lambda n: "x = f'" + "{r}" * n + "'",
        lambda n: 'x = rf"""' + "{r}\n" * n + '"""',
        lambda n: "x = f'{a:" + "{b}" * n + "}'",
    ],
)
def test_what_pythons_parser_takes_quadratic_time_for_is_skipped_with_its_line(
    costly: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    parse = lenient_parser._try
    monkeypatch.setattr(lenient_parser, "_try", lambda text: [given.append(text), parse(text)][1])
    program = parse_file("train.py", f"a = 1\n{costly(1500)}\nb = 2\n")
    assert isinstance(program, Code)

    assert [ast.unparse(n) for n in program.tree.body if isinstance(n, ast.Assign)] == ["a = 1", "b = 2"]
    assert [part.why for part in program.unread] == ["it takes too long to parse"]
    assert program.text.place(program.unread[0].span.start).line == 2
    assert max(text.count("{") + text.count(".") for text in given) < 10


def test_long_imports_and_f_strings_that_programs_have_are_parsed() -> None:
    text = "from a.b.c.d.e.f.g.h import (i, j)\nx = f'" + "{r} " * 400 + "'\n" + "y = f'{r}'; z = (0.5, 0.25)\n" * 2000
    program = parse_file("train.py", text)
    assert isinstance(program, Code)
    assert program.whole
    assert not program.unread
