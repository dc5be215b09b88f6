"""Reads what the ranks of a run noted: their steps, what they saved, and what they restored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.storage import state_dir

_FILES, _BYTES = 4096, 256 << 20

Site = tuple[str, int]


class Note(msgspec.Struct, tag_field="k", frozen=True, kw_only=True):
    """One line of a rank's notes."""

    n: int = 0
    """Number of steps of all optimizers until then."""


class Process(Note, frozen=True, tag="process"):
    """Process that wrote the following lines."""

    rank: int = 0
    world: int = 1


class Scheduler(msgspec.Struct, frozen=True):
    """Learning-rate scheduler."""

    kind: str
    site: Site
    values: dict[str, str]


class Step(Note, frozen=True, tag="step"):
    """State before a step of an optimizer."""

    o: int
    object: int
    made: Site
    site: Site
    weights: dict[str, str]
    buffers: dict[str, str] = {}
    moments: dict[str, dict[str, str]] = {}
    settings: list[dict[str, str]] = []
    schedulers: list[Scheduler] = []
    scalers: list[dict[str, str]] = []
    epochs: list[int | None] = []
    samples: list[str] = []
    random: dict[str, str] = {}
    draws: list[str] = []
    """Generators from which its data or passes have drawn."""
    loss: list[str] = []
    sharded: bool = False
    numbers: dict[str, float] = {}
    copies: dict[str, list[str]] = {}


class Save(Note, frozen=True, tag="save"):
    """Finished save; `kinds`: module, optimizer, scheduler, scaler."""

    path: str
    site: Site
    keys: list[str] = []
    kinds: list[str] = []
    numbers: dict[str, float] = {}


class Move(Note, frozen=True, tag="move"):
    """Another name for what was saved."""

    path: str
    to: str


class Load(Note, frozen=True, tag="load"):
    """Finished reading of a file."""

    path: str
    site: Site
    keys: list[str] = []
    kinds: list[str] = []


class Restore(Note, frozen=True, tag="restore"):
    """State put into an object."""

    what: str
    site: Site
    object: int = 0
    kind: str = ""
    strict: bool = True
    given: int = 0
    missing: int = 0
    unexpected: int = 0
    examples: list[str] = []


class Outside(Note, frozen=True, tag="outside"):
    """Save to a path outside of the working folder, which was not made."""

    path: str
    site: Site


class Off(Note, frozen=True, tag="off"):
    """Taking notes has failed."""

    why: str


AnyNote = Process | Step | Save | Move | Load | Restore | Outside | Off
_decoder = msgspec.json.Decoder(AnyNote)


class RankNotes(msgspec.Struct):
    """Notes of one rank."""

    rank: int
    world: int
    steps: list[Step] = []
    saves: list[Save] = []
    loads: list[Load] = []
    restores: list[Restore] = []
    outside: list[Outside] = []
    off: str = ""


def read(folder: Path) -> dict[int, RankNotes]:
    """Return the notes of each rank; of several processes with one rank, those of the one with the most steps."""
    ranks: dict[int, RankNotes] = {}
    for path in sorted(folder.glob("*.jsonl"))[:_FILES]:
        found = _of_process(path)
        if found is not None and (found.rank not in ranks or len(found.steps) > len(ranks[found.rank].steps)):
            ranks[found.rank] = found
    return dict(sorted(ranks.items()))


def _of_process(path: Path) -> RankNotes | None:
    found: RankNotes | None = None
    for note in _lines(path):
        match note:
            case Process():
                if found is None:
                    found = RankNotes(note.rank, note.world)
                else:
                    found.rank, found.world = note.rank, note.world
            case _ if found is None:
                continue
            case Step():
                found.steps.append(note)
            case Save():
                found.saves.append(note)
            case Move():
                found.saves = [_moved(save, note) for save in found.saves]
            case Load():
                found.loads.append(note)
            case Restore():
                found.restores.append(note)
            case Outside():
                found.outside.append(note)
            case Off():
                found.off = note.why
    return found


def _moved(save: Save, move: Move) -> Save:
    """Return a save with its name after a move of its file, or of a folder around it."""
    if save.path == move.path or save.path.startswith(f"{move.path}/"):
        return msgspec.structs.replace(save, path=move.to + save.path[len(move.path) :])
    return save


def _lines(path: Path) -> Iterator[Any]:
    try:
        raw = state_dir.read_start(path, _BYTES)
    except OSError:
        return
    for line in raw.splitlines():
        try:
            yield _decoder.decode(line)
        except (ValueError, RecursionError):  # truncated, or of another version
            continue
