"""Secrets are masked wherever they stand and whatever they look like; nothing of a job is taken for one."""

import json
import os
import random
import subprocess
import sys

import pytest
from secrets_data import HARMLESS, HARMLESS_TOO, VENDORS, WRITTEN, kinds, places, word

from dtdebug.clean import MASK, arguments, clean
from dtdebug.masking import environ
from dtdebug.masking.names import secret

SEEDS = (7, 11)


def parts(secret):
    """What must not be seen of it: a quote may be written in another way."""
    return secret.split("'")


@pytest.mark.parametrize("seed", SEEDS)
def test_no_kind_of_secret_passes_in_any_place(seed):
    """More than 150 kinds in eight places."""
    made = list(kinds(seed))
    passed = [
        f"{kind}, {place}: {clean(told)}"
        for kind, text, value in made
        for place, told in places(text)
        if any(part in clean(told) for part in parts(value))
    ]

    assert len(made) >= 150
    assert [] == passed


def test_lines_as_people_write_them_keep_no_secret():
    rng = random.Random(3)
    filled = [(line, word(rng, 20)) for line in WRITTEN]

    assert [] == [line for line, value in filled if value in clean(line.replace("@@", value))]


def test_what_only_resembles_a_secret_stays_as_it_is():
    """Tokens of a text, keys of a dictionary, hashes, names of kernels and models, prose."""
    texts = [*HARMLESS, *HARMLESS_TOO]

    assert len(texts) >= 300
    assert [] == [(text, clean(text)) for text in texts if clean(text) != text]
    assert clean("\n".join(texts)) == "\n".join(texts)


def test_masking_twice_changes_nothing_more():
    for _, text, _ in kinds(5):
        once = clean(text)

        assert once == clean(once)


def test_what_stands_around_a_secret_is_still_there():
    assert "wandb: API_KEY=*** is refused, step 3" == clean("wandb: API_KEY=a1b2c3d4e5f6 is refused, step 3")
    assert {"password": MASK, "rank": 3} == json.loads(clean(json.dumps({"password": 'a;b"c', "rank": 3})))


def test_a_command_line_is_read_as_a_program_would():
    """A value is known by the flag before it, whatever it looks like."""
    command = ("mysql", "-uroot", "-phunter", "--password", "plain", "--token=abc", "-u", "me:word", "--lr", "1e-4")

    assert ["mysql", "-uroot", "-p***", "--password", MASK, "--token=***", "-u", "me:***", "--lr", "1e-4"] == arguments(
        command
    )
    plain = ["torchrun", "-p", "29500", "train.py", "-u", "--tokenizer", "gpt2", "--max-tokens", "4096"]
    assert plain == arguments(plain)


def test_a_secret_of_the_environment_is_known_by_its_value():
    """Also where nothing names it."""
    code = "from dtdebug.clean import clean; print(clean('connect to db with correcthorse-battery'))"
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MY_DB_PASSWORD": "correcthorse-battery"},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert "connect to db with ***\n" == told.stdout
    harmless = {"PAD_TOKEN": "abcdefgh1", "API_KEY": "12345678901", "TOKENIZERS_PARALLELISM": "false", "SECRET": "/"}
    assert () == environ.values(harmless)


def test_the_table_of_vendors_is_what_it_says():
    assert len(VENDORS) >= 40
    for shapes in VENDORS.values():
        assert all(begin and allowed and least >= 10 for begin, (allowed, least) in shapes.items())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("access_token", "strong"),
        ("hub_token", "token"),
        ("pad_token", ""),
        ("tokenizer", ""),
        ("dbPassword", "strong"),
        ("key", "weak"),
        ("loss", ""),
    ],
)
def test_a_name_is_read_word_by_word(name, kind):
    assert kind == secret(name)
