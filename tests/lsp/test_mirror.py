"""The server's copy of a text is the client's, whatever is typed; places lead back to where they came from."""

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as t

from dtdebug_lsp import documents
from dtdebug_lsp.checking import problems
from dtdebug_lsp.documents import Document, Documents
from dtdebug_lsp.positions import Positions
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source.text import Span, Text

ENCODINGS = ("utf-8", "utf-16", "utf-32")
PIECES = [
    "a",
    "é",
    "😀",
    "\n",
    "\r\n",
    "\r",
    "\f",
    "\v",
    "\u2028",
    "\x85",
    "\0",
    " ",
    "\ufeff",
    "if x:\n    ",
    "dist.barrier()",
    '"""',
    "(",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
PROGRAM = "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n"


class Client:
    """An editor's text, kept in the editor's own way: lines, and columns in code units."""

    def __init__(self, text, encoding):
        self.text = text
        self.encoding = encoding

    def lines(self):
        """The text cut after each end of line."""
        rows, row = [], ""
        for number, character in enumerate(self.text):
            row += character
            if character == "\n" or (character == "\r" and self.text[number + 1 : number + 2] != "\n"):
                rows.append(row)
                row = ""
        return [*rows, row]

    def units(self, text):
        width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[self.encoding]
        return len(text.encode(self.encoding if width == 1 else f"{self.encoding}-le")) // width

    def position(self, offset):
        """As the editor tells a place, which is never between the two halves of `\\r\\n`."""
        for number, row in enumerate(self.lines()):
            if offset < len(row) or number == len(self.lines()) - 1:
                return t.Position(
                    number, self.units(row[:offset].rstrip("\r\n") if row[:offset].endswith("\r") else row[:offset])
                )
            offset -= len(row)
        raise AssertionError("a place beyond the text")

    def replace(self, start, end, new):
        """Edits the text; returns the message that tells so."""
        where = t.Range(self.position(start), self.position(end))
        self.text = self.text[:start] + new + self.text[end:]
        return t.TextDocumentContentChangePartial(where, new)

    def between(self, offset):
        """A place that an editor's cursor can be at."""
        offset %= len(self.text) + 1
        return offset - (self.text[offset - 1 : offset + 1] == "\r\n")


def opened(text):
    return Document(t.TextDocumentItem("file:///job/train.py", "python", 1, text))


@given(TEXTS, st.sampled_from(ENCODINGS), st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9), TEXTS), max_size=8))
def test_after_any_edits_the_copy_is_the_clients_text(text, encoding, edits):
    client, document, positions = Client(text, encoding), opened(text), Positions(encoding)

    for start, length, new in edits:
        first = client.between(start)
        last = client.between(min(first + length, len(client.text)))
        document.change([client.replace(*sorted((first, last)), new)], positions)
        assert client.text == str(document.text)

    for found in problems(document, Settings()):
        assert 0 <= found.span.start <= found.span.end <= len(client.text)


@given(TEXTS, st.sampled_from(ENCODINGS), st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9), TEXTS), max_size=8))
def test_after_all_edits_of_one_message_the_copy_is_the_clients_text(text, encoding, edits):
    client, document = Client(text, encoding), opened(text)
    changes = []
    for start, length, new in edits:
        first = client.between(start)
        last = client.between(min(first + length, len(client.text)))
        changes.append(client.replace(*sorted((first, last)), new))
    with mock.patch.object(documents, "_MANY", 0):
        document.change(changes, Positions(encoding))
    assert client.text == str(document.text)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 40), TEXTS), max_size=6), st.sampled_from(ENCODINGS))
def test_what_is_found_while_a_program_is_edited_lies_in_the_text(edits, encoding):
    """What was found before moves with the text and never points outside of it."""
    client, document, positions = Client(PROGRAM, encoding), opened(PROGRAM), Positions(encoding)
    assert ["DT101"] == [p.check.id for p in problems(document, Settings())]

    for start, length, new in edits:
        first = client.between(start)
        last = client.between(min(first + length, len(client.text)))
        document.change([client.replace(*sorted((first, last)), new)], positions)
        for found in problems(document, Settings()):
            assert 0 <= found.span.start <= found.span.end <= len(client.text)
            assert positions.span(document.text, positions.range(document.text, found.span)) == found.span


@given(TEXTS, st.sampled_from(ENCODINGS), st.integers(0, 99))
def test_a_place_told_to_the_client_and_back_is_the_same(text, encoding, number):
    client, positions = Client(text, encoding), Positions(encoding)
    offset = client.between(number)

    told = positions.position(Text(text), offset)

    assert client.position(offset) == told
    assert offset == positions.offset(Text(text), told)


@given(TEXTS, st.sampled_from(ENCODINGS), st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_any_position_is_somewhere_in_the_text(text, encoding, line, column):
    assert 0 <= Positions(encoding).offset(Text(text), t.Position(line, column)) <= len(text)


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 6), ("utf-16", 3), ("utf-32", 2)])
def test_each_encoding_counts_its_own_units(encoding, column):
    text = Text("é😀x")

    assert t.Position(0, column) == Positions(encoding).position(text, 2)
    assert Span(2, 3) == Positions(encoding).span(text, t.Range(t.Position(0, column), t.Position(0, column + 1)))


def test_a_finding_moves_with_its_line_and_goes_when_it_is_deleted():
    document, positions = opened(PROGRAM), Positions("utf-16")
    (before,) = problems(document, Settings())

    document.change(
        [t.TextDocumentContentChangePartial(t.Range(t.Position(0, 0), t.Position(0, 0)), "x = (\n")], positions
    )
    (moved,) = problems(document, Settings())
    assert before.span.start + 6 == moved.span.start
    assert () == moved.edits, "no fix is offered in a text that is half typed"

    document.change([t.TextDocumentContentChangePartial(t.Range(t.Position(3, 2), t.Position(3, 12)), "")], positions)
    assert [] == problems(document, Settings())


def test_texts_that_nobody_opened_are_not_edited():
    documents = Documents()
    identifier = t.VersionedTextDocumentIdentifier(1, "file:///nowhere.py")

    assert documents.change(t.DidChangeTextDocumentParams(identifier, [])) is None
    assert [] == list(documents)
