"""Recorded inputs: each folder of `samples` is a positive for one symptom and a negative for all others."""

from pathlib import Path

import pytest
from dtdebug.clean import clean
from dtdebug.cli import NOTHING, main
from dtdebug.logs import reader
from dtdebug_taxonomy.diagnosis import diagnose
from dtdebug_taxonomy.knowledge import load
from dtdebug_taxonomy.snapshot import Snapshot

SAMPLES = Path(__file__).parent / "samples"
HEALTHY = sorted((SAMPLES / "none").glob("*.txt"))
FAULTS = sorted(
    {
        (folder.name, file.name.removesuffix(".txt").removesuffix(".said"))
        for folder in SAMPLES.iterdir()
        if folder.is_dir() and folder.name != "none"
        for file in folder.glob("*.txt")
    }
)


def recorded(folder: str, name: str) -> Snapshot:
    """What a program printed and what its user said, as far as either was recorded."""
    printed, words = SAMPLES / folder / f"{name}.txt", SAMPLES / folder / f"{name}.said.txt"
    return Snapshot(
        output=clean(reader.read_path(printed).text) if printed.exists() else "",
        situation=clean(words.read_text()) if words.exists() else "",
    )


@pytest.mark.parametrize(("symptom", "name"), FAULTS, ids=["/".join(fault) for fault in FAULTS])
def test_a_sample_is_diagnosed_as_its_folder_says(symptom, name):
    """The folder's symptom comes first, before the 29 others."""
    best = diagnose(load(), recorded(symptom, name)).symptoms

    assert symptom == best[0].id, [(s.code, s.probability) for s in best[:3]]


@pytest.mark.parametrize("log", HEALTHY, ids=lambda log: log.stem)
def test_a_healthy_log_is_left_alone(log, capsys):
    """Nothing is worth showing unasked, and the command ends with status 0."""
    d = diagnose(load(), recorded("none", log.stem))

    assert not d.recognised
    assert main(["diagnose", str(log)]) == NOTHING
    assert "nothing here is recognised" in capsys.readouterr().out


def test_there_are_samples_of_both_kinds():
    """An empty folder would pass unseen."""
    assert len(FAULTS) >= 100
    assert len(HEALTHY) >= 25
