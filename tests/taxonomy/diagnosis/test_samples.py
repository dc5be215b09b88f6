"""Recorded inputs: each folder of `samples` is a positive for one symptom and a negative for all others."""

import re

import pytest
from places import TESTS

from dtdebug.cli.main import main
from dtdebug.errors import FOUND, NOTHING
from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.log_files import excerpt
from dtdebug_taxonomy.diagnosis.diagnose import diagnose
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.model.snapshot import Snapshot

SAMPLES = TESTS / "samples"
FAULTS = sorted(
    {
        (folder.name, file.name.removesuffix(".txt").removesuffix(".said"))
        for folder in SAMPLES.iterdir()
        if folder.is_dir() and folder.name != "none"
        for file in folder.glob("*.txt")
    }
)
NO_FAULTS = sorted(file.stem for file in (SAMPLES / "none").glob("*.txt"))
ONE_PROCESS = [name for name in NO_FAULTS if name.startswith("one-process-")]
"""Programs of one process that failed: not ours to show unasked, but a command that is asked may name them."""
HEALTHY = [name for name in NO_FAULTS if name not in ONE_PROCESS]


def recorded(folder: str, name: str) -> Snapshot:
    """What a program printed and what its user said, as far as either was recorded."""
    printed, words = SAMPLES / folder / f"{name}.txt", SAMPLES / folder / f"{name}.said.txt"
    return Snapshot(
        output=clean(excerpt.read_path(printed).text) if printed.exists() else "",
        situation=clean(words.read_text()) if words.exists() else "",
    )


@pytest.mark.parametrize(("symptom", "name"), FAULTS, ids=["/".join(fault) for fault in FAULTS])
def test_a_sample_is_diagnosed_as_its_folder_says(symptom, name):
    """The folder's symptom comes first, before the 29 others."""
    best = diagnose(load(), recorded(symptom, name)).symptoms

    assert symptom == best[0].id, [(s.code, s.probability) for s in best[:3]]


@pytest.mark.parametrize("name", NO_FAULTS)
def test_nothing_appears_unasked_without_a_fault_of_distributed_training(name):
    """Neither for a healthy log nor for the failure of a program that is one process."""
    assert not diagnose(load(), recorded("none", name)).recognised


FOREIGN = (
    "cmake-optional-packages", "git-clone", "jupyter-server", "mpi-hello", "pip-build-extension", "pip-install",
    "python-source", "sshd-journal", "unittest-passes", "web-server",
)  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
def test_the_command_finds_nothing_in_a_healthy_log(name, capsys):
    """Status 0, and it says so with a measure; of what is no training it says that this is not understood."""
    status = main(["diagnose", str(SAMPLES / "none" / f"{name}.txt")])
    said = capsys.readouterr().out
    understood = name not in FOREIGN
    assert status == (NOTHING if understood else FOUND)
    measured = r"(?:No known failure in .*looked at are of training|No failure: .* completed \(line \d+\)\.$)"
    assert re.match(
        rf"dtdebug: {measured}" if understood else "dtdebug: Not understood: .* are of training", said, re.MULTILINE
    )


def test_there_are_samples_of_each_kind():
    """An empty folder would pass unseen."""
    assert len(FAULTS) >= 100
    assert len(HEALTHY) >= 25
    assert len(ONE_PROCESS) >= 5
