"""What is kept and shown is free of escapes, control characters and secrets."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtdebug.privacy.sanitize import MASK, allowed_variables, clean


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mRuntimeError\x1b[0m: boom", "RuntimeError: boom"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10%\r50%\r100% done\nnext", "100% done\nnext"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("a\x00b\x08c\u202ed", "abcd"),
        ("tab\tstays", "tab\tstays"),
    ],
)
def test_escapes_and_control_characters_do_not_go_through(text, expected):
    """Colours, titles, links, overwritten progress bars, characters that reorder text."""
    assert expected == clean(text)


@pytest.mark.parametrize(
    "secret",
    [
        "hf_AbCdEfGhIjKlMnOpQrStUv",
        "ghp_0123456789abcdefghij0123456789abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "WANDB_API_KEY=0123456789abcdef",
        "password: hunter2hunter2",
        '"aws_secret_access_key": "abcd1234abcd1234"',
        "Authorization: Bearer abcdefghijklmnop123456",
        "https://user:pa55word@host/path",
        "redis://:pa55word@host/0",
        "https://user:pa55word@pa55word@host/path",
        "Authorization: Basic abcdefghijklmnop",
        "hf_" + "AbCdEf" * 100,
        "PASSWORD=" + "hunter2" * 100,
        "-----BEGIN PRIVATE KEY-----\\n" + "abcdefghijklmnop" * 20,
    ],
)
def test_what_looks_like_a_secret_is_masked(secret):
    """Tokens by their shape, assignments by their name, passwords in addresses."""
    told = clean(f"before {secret} after")

    assert MASK in told
    assert not re.search(r"AbCdEf|012345678|IOSFODNN|hunter2|abcd1234|abcdefghijkl|pa55word", told)
    assert told.startswith("before ")
    assert told.endswith(" after")


@pytest.mark.parametrize(
    "text",
    ["basic initialization failed", "max_tokens=4096", "tokens/s 1200", "task-1234567890123456789", "a://b:80/c"],
)
def test_what_only_resembles_a_secret_stays(text):
    """Prose, counts, names that end like a token's beginning, ports."""
    assert text == clean(text)


def test_half_a_character_is_replaced():
    """Lone surrogates, as JSON and names of files carry them, can't be written."""
    assert clean("caf\udce9") == "caf\ufffd"


def test_a_private_key_is_masked_and_lines_keep_their_numbers():
    """The block goes, its line breaks stay."""
    block = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----"

    assert clean(f"one\n{block}\nlast") == "one\n***\n\n\n\nlast"


def test_only_allow_listed_variables_are_kept():
    """Ranks and communication yes; the rest of the environment no; secrets never."""
    kept = allowed_variables(
        {
            "RANK": "3",
            "NCCL_DEBUG": "INFO",
            "HOME": "/home/me",
            "AWS_SECRET": "x",
            "NCCL_AUTH_TOKEN": "abc",
            "PATH": "/bin",
        }
    )

    assert kept == {"RANK": "3", "NCCL_DEBUG": "INFO", "NCCL_AUTH_TOKEN": MASK}


@given(st.text(max_size=2_000))
def test_cleaning_is_complete_whatever_the_text(text):
    """No escape or control character is left, and cleaning twice changes nothing more."""
    once = clean(text)

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", once)
    assert once == clean(once)
