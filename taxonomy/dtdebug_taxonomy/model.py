"""The types of the knowledge: what a symptom, a cause, an indicator and an observation are.

Everything here is frozen data, decoded from TOML by `knowledge.load`. Field order is the
order in which the files are written.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Strength = Literal["always", "usually", "often", "sometimes", "rarely", "never"]
Effort = Literal["glance", "edit", "restart", "rerun", "reinstall", "hardware"]
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
"""Worded efforts in minutes, seeing whether it helped included."""


class KnowledgeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, eq=False):
    """Base of all knowledge records: immutable, strict about keys, compared by identity."""


class Cure(KnowledgeRecord, frozen=True, kw_only=True):
    """What one message says of a cause: the library, version or setting that it names, and what to do about that."""

    cause: str
    """Id of the cause that the message names in this way."""
    when: str = ""
    """Pattern on the words of the message; empty: in any case. Its named groups fill `{name}` in title, why and fix."""
    title: str
    why: str = ""
    """Empty: as the cause has it."""
    fix: str
    diff: str = ""
    """Empty: no diff, for that of the cause is of the general case."""


class Evidence(KnowledgeRecord, frozen=True, kw_only=True):
    """A fact about a run that may be so, with the ways to see it.

    `symptoms` reads: of the faults that show this first, so many are of that symptom. A
    code that is not named gets what the named ones leave over. An indicator without
    `symptoms` tells causes apart only, or is boilerplate of a launcher.
    """

    id: str
    means: str
    role: Role = "root"
    generic: bool = False
    """Printed by one-process programs too: alone it is no sign of distributed training."""
    several: str = ""
    """Of one that is `generic`: what to look at if several processes run it after all, in a sentence."""
    catch_all: bool = False
    """Only the class of an error: says little where another message tells more."""
    text: tuple[str, ...] = ()
    """Patterns on program output: linear-time, case-insensitive, within one line."""
    exception: tuple[str, ...] = ()
    """Names of exception classes, qualified (`torch.cuda.OutOfMemoryError`) or not."""
    says: tuple[str, ...] = ()
    """Patterns on the user's own words, within one clause."""
    verdict: tuple[str, ...] = ()
    """Kinds of a verdict on the ranks that show it: `skipped`; `dead SIGKILL` where a culprit ended by that signal;
    `skipped uneven` where the ranks count different numbers of batches; `skipped loop_ended` where the source shows
    that a culprit had fewer rounds to make. In place of the kind: `dead own_exit` where a culprit's own line ended it
    (`os._exit`), `not_arrived circle` of ranks that wait for each other (`lock_circle`: for locks of files),
    `not_arrived set_up` when a process group is made, `not_arrived shared_rank` where two processes have one rank."""
    stack: tuple[str, ...] = ()
    """Patterns on `file function` of a frame in which a culprit of that verdict stands; all verdicts if it has none."""
    check: tuple[str, ...] = ()
    """Ids of checks that see it in the source of the failed cell."""
    watch: tuple[str, ...] = ()
    """Names of invariants of a training that do not hold; `late loader` for a phase that others wait for."""
    own: tuple[str, ...] = ()
    """Classes of exceptions that a rank's own code raised, outside any framework; `*` for those named nowhere else,
    `<library>` for what a framework raised below the program's own line, `<ranks>` for a check of the program's own
    that found ranks to differ."""
    order: tuple[tuple[str, str], ...] = ()
    """Pairs of other evidence: seen where the first was printed above the second."""
    all: tuple[tuple[str, ...], ...] = ()
    """Sets of other evidence and `observation=value`: seen where all of a set are."""
    unless: tuple[str, ...] = ()
    """Other evidence beside which this, or the sets of `all`, means nothing."""
    names: tuple[str, ...] = ()
    """Ids of causes that the message itself names, such as "Duplicate GPU detected": they come before all others."""
    cure: tuple[Cure, ...] = ()
    """The same for some of its words, with the advice for just those."""
    symptoms: dict[str, Strength] = {}
    cite: str = ""
    """Where the message is printed: an address, or path and function in a named release."""


class MessageFile(KnowledgeRecord, frozen=True, kw_only=True):
    """`messages/NAME.toml`: what one framework or layer can print, grouped by family."""

    framework: str
    summary: str
    evidence: tuple[Evidence, ...]


class Reference(KnowledgeRecord, frozen=True, kw_only=True):
    """Something to read on."""

    title: str
    url: str


class Cause(KnowledgeRecord, frozen=True, kw_only=True):
    """One concrete thing that is wrong, and its fix."""

    id: str
    title: str
    pattern: str
    """Id of the fix pattern (`patterns.toml`)."""
    why: str
    fix: str
    effort: Effort
    diff: str = ""
    """The fix as a unified diff, where code is the fix and there is no lab."""
    lab: str = ""
    """Folder in `labs/` whose before/after pair is the diff."""
    needs: dict[str, tuple[str, ...]] = {}
    """Observation -> values of which one must hold: where something else is known, it is not this cause."""
    unless: tuple[str, ...] = ()
    """Indicators of which one that is seen rules it out."""
    example_for: dict[str, tuple[str, ...]] = {}
    """The same as `needs` for its diff: whoever uses something else sees the cause without it."""
    evidence: dict[str, Strength] = {}
    """Evidence id, or `observation=value`, to how often it is so when this is the cause."""
    uncounted: bool = False
    """Newer than the studies: it has no part in the published counts of its fix pattern."""


class Counts(KnowledgeRecord, frozen=True, kw_only=True):
    """Published counts of one study."""

    faults: int
    distributed_specific: int
    frameworks: dict[str, int] = {}
    fix_patterns: dict[str, int] = {}
    """Published spelling of the pattern -> faults."""


class Symptom(KnowledgeRecord, frozen=True, kw_only=True):
    """What is seen: one leaf of the study, one file."""

    code: str
    name: str
    """The study's own name."""
    title: str
    stage: Literal["build", "communication-setup", "preparation", "training"]
    kind: Literal["failure", "abnormal-behaviour"]
    provenance: Provenance
    summary: str
    apart: str = ""
    """How to tell it from its neighbours."""
    says: tuple[str, ...] = ()
    """Whole sentences as users write them; compared with a user's text by similarity."""
    counts: dict[str, Counts]
    observed: dict[str, dict[str, Strength]] = {}
    """Observation -> value -> how often it is so when this is the symptom."""
    cause: tuple[Cause, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    reference: tuple[Reference, ...] = ()
    id: str = ""
    """File name without suffix; filled in by the loader."""


class Value(KnowledgeRecord, frozen=True, kw_only=True):
    """One possible answer to an observation's question."""

    value: str
    means: str
    share: Strength
    """How often it is so over all faults."""
    says: tuple[str, ...] = ()
    text: tuple[str, ...] = ()


class Observation(KnowledgeRecord, frozen=True, kw_only=True):
    """Something that a user can observe or dtdebug can measure, with its question."""

    ask: str
    why: str
    """What the answer separates."""
    effort: Effort
    answerable: Strength
    """How often a user can answer when asked."""
    how: str
    """How to find out, for "I don't know, show me how"."""
    command: str = ""
    """A command to copy that shows it."""
    context: bool = False
    """Says where it happened, not what is wrong: it orders causes and rules them out, but points at none."""
    value: tuple[Value, ...]
    key: str = ""
    """File name without suffix; filled in by the loader."""


class Pattern(KnowledgeRecord, frozen=True, kw_only=True):
    """A class of fixes of the study."""

    id: str
    name: str
    """Published spelling."""
    title: str
    how: str
    effort: Effort
    evidence: dict[str, Strength] = {}
    """`observation=value` to how often it is so where such a fix helped, whatever the symptom."""


class Measure(KnowledgeRecord, frozen=True, kw_only=True):
    """A step that shows something without changing anything."""

    id: str
    text: str
    """What to do, one sentence."""
    command: str
    means: str
    """What its output would mean."""
    minutes: float
    tells: Strength
    """How often it names the cause, where one of its symptoms is the right one."""
    symptoms: tuple[str, ...]
    needs: dict[str, tuple[str, ...]] = {}
    """Observation -> values of which one must hold."""
    known: bool = False
    """Worth it only where `needs` is known to hold, not merely not excluded."""
    alive: bool = False
    """It looks at processes: nothing for a job that has ended."""
    spent_by: Literal["", "ranks", "output", "source", "contrasts"] = ""
    """What the snapshot must not hold already: a verdict on ranks, output, findings in the source, runs with something
    changed."""
    seen: tuple[str, ...] = ()
    """Indicators, or `observation=value` beside others, of which one must have been seen."""
    takes: tuple[str, ...] = ()
    """Observations that its command takes as `--answer KEY=VALUE`, so that it does not look for what is known."""


class Release(KnowledgeRecord, frozen=True, kw_only=True):
    """A release, or a combination of releases, that is known to fail: a fact with its source."""

    id: str
    package: str
    """Key of `versions.NAMES`."""
    range: str
    """Releases that fail, such as `>=2.19,<2.26.2`; empty: every release beside those of `beside`."""
    beside: dict[str, str] = {}
    """Other package -> range that must hold, where its release is known."""
    text: tuple[str, ...] = ()
    """Patterns on output, one of which must be seen (or one of `says`)."""
    says: tuple[str, ...] = ()
    """Patterns on the user's words."""
    where: tuple[str, ...] = ()
    """Patterns on anything that was told, one of which must be seen as well: a device, a network."""
    alone: bool = False
    """The message occurs in these releases only, so that it tells without a release being named."""
    symptom: str
    pattern: str
    """Id of the fix pattern."""
    title: str
    why: str
    fix: str
    effort: Effort = "reinstall"
    cite: str
