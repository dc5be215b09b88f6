"""The types of the knowledge: symptom, cause, indicator, observation.

Everything here is frozen data, decoded from TOML by `knowledge.load`. Field order is the
order in which the files are written.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dtdebug_taxonomy.model.effort import Effort

Strength = Literal["always", "usually", "often", "sometimes", "rarely", "never"]
Role = Literal["root", "cascade", "advice"]
Provenance = Literal["published", "reconstructed", "ours"]

STRENGTHS: dict[Strength, float] = {
    "always": 0.98,
    "usually": 0.85,
    "often": 0.6,
    "sometimes": 0.3,
    "rarely": 0.1,
    "never": 0.02,
}
"""Worded strengths as probabilities (after INTERNIST/QMR: people agree on words, not on figures)."""

MINUTES: dict[Effort, float] = {
    "glance": 1,
    "edit": 10,
    "restart": 20,
    "rerun": 45,
    "reinstall": 60,
    "hardware": 480,
}
"""Worded efforts in minutes, including the time to see whether it helped."""


class KnowledgeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, eq=False):
    """Base of all knowledge records: immutable, strict about keys, compared by identity."""


class Cure(KnowledgeRecord, frozen=True, kw_only=True):
    """Advice of one message on a cause: the library, version or setting that it names, and what to do about it."""

    cause: str
    """Id of the cause that the message names."""
    when: str = ""
    """Pattern on the words of the message; empty: always. Its named groups fill `{name}` in title, why and fix."""
    title: str
    why: str = ""
    """Empty: as in the cause."""
    fix: str
    diff: str = ""
    """Empty: no diff, because that of the cause is for the general case."""


class Evidence(KnowledgeRecord, frozen=True, kw_only=True):
    """A fact that may hold for a run, with the ways to see it.

    `symptoms` gives the share of each symptom among the faults that show this first. A
    code that is not named gets a share of the rest. An indicator without
    `symptoms` only distinguishes causes, or is boilerplate of a launcher.
    """

    id: str
    means: str
    role: Role = "root"
    generic: bool = False
    """True if one-process programs print it too: alone it is not a sign of distributed training."""
    several: str = ""
    """For a `generic` one: what to check if several processes run it after all, in a sentence."""
    catch_all: bool = False
    """True if it is only the class of an error: it means little if another message says more."""
    text: tuple[str, ...] = ()
    """Patterns on program output: linear-time, case-insensitive, within one line."""
    exception: tuple[str, ...] = ()
    """Names of exception classes, qualified (`torch.cuda.OutOfMemoryError`) or not."""
    says: tuple[str, ...] = ()
    """Patterns on the user's own words, within one clause."""
    verdict: tuple[str, ...] = ()
    """Kinds of a verdict on the ranks that show it: `skipped`; `dead SIGKILL` if a culprit ended by that signal;
    `skipped uneven` if the ranks count different numbers of batches; `skipped loop_ended` if the source shows that
    a culprit had fewer iterations to make. Instead of the kind: `dead own_exit` if a culprit's own line ended it
    (`os._exit`), `not_arrived circle` for ranks that wait for each other (`lock_circle`: for locks of files),
    `not_arrived set_up` while a process group is created, `not_arrived shared_rank` if two processes have one rank."""
    stack: tuple[str, ...] = ()
    """Patterns on `file function` of a culprit's frame in such a verdict; in any verdict if it has none."""
    check: tuple[str, ...] = ()
    """Ids of checks that find it in the source of the failed cell."""
    watch: tuple[str, ...] = ()
    """Names of violated training invariants; `late loader` for a phase that others wait for."""
    own: tuple[str, ...] = ()
    """Classes of exceptions that a rank's own code raised, outside any framework; `*` for those named nowhere else,
    `<library>` for an exception of a framework below the program's own line, `<ranks>` for a check of the program's
    own that found differing ranks."""
    order: tuple[tuple[str, str], ...] = ()
    """Pairs of other evidence: present if the first was printed above the second."""
    all: tuple[tuple[str, ...], ...] = ()
    """Sets of other evidence and `observation=value`: present if all of a set are."""
    unless: tuple[str, ...] = ()
    """Other evidence in whose presence this, or the sets of `all`, means nothing."""
    shows: tuple[str, ...] = ()
    """Settings without which the message is not printed, such as `TORCH_DISTRIBUTED_DEBUG=DETAIL`."""
    names: tuple[str, ...] = ()
    """Ids of causes that the message itself names, such as "Duplicate GPU detected": they precede all others."""
    cure: tuple[Cure, ...] = ()
    """The same for some of its words, with advice for just those."""
    symptoms: dict[str, Strength] = {}
    cite: str = ""
    """Source of the message: an address, or path and function in a named release."""


class MessageFile(KnowledgeRecord, frozen=True, kw_only=True):
    """`messages/NAME.toml`: the messages of one framework or layer, grouped by family."""

    framework: str
    summary: str
    evidence: tuple[Evidence, ...]


class Reference(KnowledgeRecord, frozen=True, kw_only=True):
    """Further reading."""

    title: str
    url: str


class Cause(KnowledgeRecord, frozen=True, kw_only=True):
    """One concrete fault, and its fix."""

    id: str
    title: str
    headline: str = ""
    """The cause as a sentence in the past tense where ranks were compared; it may name `{callers}`, `{others}`,
    `{ended}` (whose loop ended first) and `{lasting}`."""
    pattern: str
    """Id of the fix pattern (`patterns.toml`)."""
    why: str
    fix: str
    effort: Effort
    diff: str = ""
    """The fix as a unified diff, if it is code and there is no lab."""
    lab: str = ""
    """Folder in `labs/` whose before/after pair is the diff."""
    needs: dict[str, tuple[str, ...]] = {}
    """Observation -> values, one of which must hold: any other known value rules out this cause."""
    unless: tuple[str, ...] = ()
    """Indicators, any of which rules it out."""
    example_for: dict[str, tuple[str, ...]] = {}
    """The same as `needs` for its diff: users of something else see the cause without it."""
    evidence: dict[str, Strength] = {}
    """Evidence id, or `observation=value`, -> how often it holds if this is the cause."""
    uncounted: bool = False
    """True if it is newer than the studies: it has no part in the published counts of its fix pattern."""


class Counts(KnowledgeRecord, frozen=True, kw_only=True):
    """Published counts of one study."""

    faults: int
    distributed_specific: int
    frameworks: dict[str, int] = {}
    fix_patterns: dict[str, int] = {}
    """Published spelling of the pattern -> faults."""


class Symptom(KnowledgeRecord, frozen=True, kw_only=True):
    """Visible effect of a fault: one leaf of the study, one file."""

    code: str
    name: str
    """The study's own name."""
    title: str
    stage: Literal["build", "communication-setup", "preparation", "training"]
    kind: Literal["failure", "abnormal-behaviour"]
    provenance: Provenance
    summary: str
    apart: str = ""
    """Differences from similar symptoms."""
    says: tuple[str, ...] = ()
    """Whole sentences as users write them; compared with a user's text by similarity."""
    counts: dict[str, Counts]
    observed: dict[str, dict[str, Strength]] = {}
    """Observation -> value -> how often it holds if this is the symptom."""
    cause: tuple[Cause, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    reference: tuple[Reference, ...] = ()
    id: str = ""
    """File name without suffix; set by the loader."""


class Value(KnowledgeRecord, frozen=True, kw_only=True):
    """One possible answer to an observation's question."""

    value: str
    means: str
    share: Strength
    """Frequency over all faults."""
    says: tuple[str, ...] = ()
    text: tuple[str, ...] = ()


class Observation(KnowledgeRecord, frozen=True, kw_only=True):
    """Property that a user can observe or dtdebug can measure, with its question."""

    ask: str
    why: str
    """Distinction that the answer makes."""
    effort: Effort
    answerable: Strength
    """Share of users who can answer."""
    how: str
    """Instructions for finding out, for "I don't know, show me how"."""
    command: str = ""
    """Command to copy that shows it."""
    context: bool = False
    """True if it states where it happened, not what is wrong: it orders and rules out causes, but points at none."""
    value: tuple[Value, ...]
    key: str = ""
    """File name without suffix; set by the loader."""


class Pattern(KnowledgeRecord, frozen=True, kw_only=True):
    """Class of fixes of the study."""

    id: str
    name: str
    """Published spelling."""
    title: str
    how: str
    effort: Effort
    evidence: dict[str, Strength] = {}
    """`observation=value` -> how often it holds if such a fix helped, for any symptom."""


class Measure(KnowledgeRecord, frozen=True, kw_only=True):
    """Step that shows something without changing anything."""

    id: str
    text: str
    """The step, in one sentence."""
    command: str
    means: str
    """Interpretation of its output."""
    minutes: float
    tells: Strength
    """Probability, in words, that it names the cause if one of its symptoms is present."""
    symptoms: tuple[str, ...]
    needs: dict[str, tuple[str, ...]] = {}
    """Observation -> values, one of which must hold."""
    known: bool = False
    """True if it is worthwhile only if `needs` is known to hold, not merely not excluded."""
    alive: bool = False
    """True if it examines processes: useless for a job that has ended."""
    spent_by: Literal["", "ranks", "output", "source", "contrasts"] = ""
    """Part of the snapshot that makes it unnecessary: a verdict on ranks, output, findings in the source, runs with
    something changed."""
    seen: tuple[str, ...] = ()
    """Indicators, or `observation=value`, one of which must have been seen."""
    unless: tuple[str, ...] = ()
    """Indicators, any of which shows that what it examines went well."""
    takes: tuple[str, ...] = ()
    """Observations that its command takes as `--answer KEY=VALUE`, so that it does not determine them again."""


class Release(KnowledgeRecord, frozen=True, kw_only=True):
    """Release, or combination of releases, that is known to fail: a fact with its source."""

    id: str
    package: str
    """Key of `versions.NAMES`."""
    range: str
    """Releases that fail, such as `>=2.19,<2.26.2`; empty: every release, with those of `beside`."""
    beside: dict[str, str] = {}
    """Other package -> range that must hold, if its release is known."""
    text: tuple[str, ...] = ()
    """Patterns on output, one of which must be seen (or one of `says`)."""
    says: tuple[str, ...] = ()
    """Patterns on the user's words."""
    where: tuple[str, ...] = ()
    """Patterns on all of the input, one of which must be seen as well: a device, a network."""
    alone: bool = False
    """True if the message occurs in these releases only, so that it is proof even if no release is named."""
    symptom: str
    pattern: str
    """Id of the fix pattern."""
    title: str
    why: str
    fix: str
    effort: Effort = "reinstall"
    cite: str
