"""Statements of several lines as one, and edits of it in the lines of the file."""

import ast

import pytest

from dtdebug_taxonomy.source.joined_lines import edit_lines, join_lines, joined_as

CALL = ["    loader = DataLoader(", "        rows,", "        shuffle=True,", "        batch_size=int(n),", "    )"]
TEXT = "loader = DataLoader(rows, shuffle=True, batch_size=int(n),)"


def test_lines_are_joined_without_their_indentation():
    joined = join_lines(CALL)
    assert joined.text == TEXT
    assert joined.column(2, 8) == TEXT.index("shuffle")
    assert joined_as([*CALL, "next()"], TEXT) == (5, joined)
    assert joined_as(["x = 1", *CALL], TEXT) is None


@pytest.mark.parametrize(
    "lines",
    [["x = 1"], ["f(", "  1,  # one", ")"], ['f("""', 'a""")'], ["x = 1 + \\", "  2"], ["f("] * 40, ["f(", "'ä')"]],
)
def test_what_can_not_be_told_apart_again_is_not_joined(lines):
    """A comment would swallow what follows, a string of several lines would lose its breaks."""
    assert join_lines(lines) is None


@pytest.mark.parametrize(
    ("edited", "lines"),
    [
        (TEXT.replace("True", "False"), [*CALL[:2], "        shuffle=False,", *CALL[3:]]),
        (TEXT.replace(", shuffle=True", ""), [*CALL[:2], *CALL[3:]]),
        (TEXT.replace("shuffle=True, ", ""), [*CALL[:2], *CALL[3:]]),
        (TEXT.replace(", batch_size=int(n)", ""), [*CALL[:3], *CALL[4:]]),
        (TEXT.replace("batch_size", "size"), [*CALL[:3], "        size=int(n),", CALL[4]]),
        (TEXT.replace("int(n),)", "int(n), drop_last=True)"), None),
        (TEXT.replace("DataLoader(rows", "Loader(rows"), ["    loader = Loader(", *CALL[1:]]),
    ],
)
def test_an_edit_changes_its_own_lines_only(edited, lines):
    """The others keep their breaks, and the whole still parses to what was meant."""
    found = edit_lines(CALL, join_lines(CALL), edited)
    assert lines is None or found == lines
    whole = "\n".join(row.removeprefix("    ") for row in found)
    assert ast.dump(ast.parse(whole)) == ast.dump(ast.parse(edited))
