"""One failure as it was read: the snapshot, and what its parts say, each parsed once and on first use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from dtdebug_taxonomy.logs.files_of_ranks import RankFile, files_of_ranks
from dtdebug_taxonomy.logs.final_errors import FinalError, final_errors
from dtdebug_taxonomy.logs.log import Log, read_output
from dtdebug_taxonomy.logs.message_advice import MessageAdvice, advice_in_message
from dtdebug_taxonomy.logs.program_errors import OwnError, own_errors
from dtdebug_taxonomy.logs.relevance import Bearing
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.text import comparisons
from dtdebug_taxonomy.text.compared_runs import find_bounds, find_in_blocks, find_in_tables
from dtdebug_taxonomy.text.comparisons import Condition, Regression
from dtdebug_taxonomy.text.contrasts import Contrast, find_contrasts
from dtdebug_taxonomy.text.discoveries import Discovery, find_discovery
from dtdebug_taxonomy.text.distributed_signs import is_distributed, speaks_of_several
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain
from dtdebug_taxonomy.text.phrase_table import in_english, spoken_phrases


class Prose:
    """The user's words, and the comparisons in them."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def bilingual(self) -> str:
        """The words, followed by the English of their known phrases in other languages."""
        return f"{self.text}\n{in_english(self.text)}"

    @cached_property
    def regression(self) -> Regression | None:
        """A release, update or change since which it fails."""
        return comparisons.find_regression(self.text)

    @cached_property
    def device(self) -> Condition | None:
        """The device without which it works."""
        return comparisons.find_device(self.text)

    @cached_property
    def condition(self) -> Condition | None:
        """The condition under which it works."""
        return comparisons.find_condition(self.text)

    @cached_property
    def discovery(self) -> Discovery | None:
        """The writer's own finding."""
        return find_discovery(self.text)


class Incident:
    """One failure as it was read; every stage of the diagnosis takes it, and none parses text again."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.prose = Prose(snapshot.situation)

    @cached_property
    def log(self) -> Log:
        """The output, parsed."""
        return read_output(self.snapshot)

    @cached_property
    def relevance(self) -> Bearing:
        """Relevance of each line of the output to the failure."""
        return Bearing(self.snapshot, self.log)

    @cached_property
    def said(self) -> str:
        """The user's words, with long lines cut."""
        return clip_lines(self.prose.text)

    @cached_property
    def printed(self) -> str:
        """The output, with long lines cut."""
        return clip_lines(self.snapshot.output)

    @cached_property
    def texts(self) -> str:
        """Everything that was said, started (one line) and printed: a figure may stand in any of it."""
        return "\n".join((self.said, " ".join(" ".join(self.snapshot.command).split()), self.printed))

    def line_of(self, found: re.Match[str]) -> tuple[Literal["said", "printed"], int]:
        """Return how a match in `said`, `printed` or `texts` is known, and its 1-based line; 0 in the command."""
        line = found.string.count("\n", 0, found.start()) + 1
        if found.string is not self.texts:
            return ("printed" if found.string is self.printed else "said"), line
        below = line - self.said.count("\n") - 2
        return ("printed", below) if below > 0 else ("said", line if below < 0 else 0)

    @cached_property
    def errors(self) -> tuple[FinalError, ...]:
        """Errors that ended the program, the exception at hand first."""
        return tuple(final_errors(self.snapshot, self.log, self.relevance))

    @cached_property
    def files_of_ranks(self) -> dict[int, RankFile]:
        """Files that one rank alone names, where each of several names another."""
        return files_of_ranks(self.log.lines)

    @cached_property
    def own_errors(self) -> tuple[OwnError, ...]:
        """Errors of the ranks' own code, outside any framework."""
        return tuple(own_errors(self.snapshot, self.log))

    @cached_property
    def contrasts(self) -> tuple[Contrast, ...]:
        """Differences between runs that work and runs that do not: in tables and lists of settings, then in words."""
        words, output = self.prose.text, self.snapshot.output
        pasted = (*find_in_tables(words), *find_in_blocks(words), *find_in_tables(output), *find_in_blocks(output))
        return (*pasted, *find_bounds(f"{words}\n{output}"), *(find_contrasts(words) or self._foreign_contrasts()))

    def _foreign_contrasts(self) -> Iterator[Contrast]:
        """Yield what the phrases of another language contrast, with the user's own words."""
        rows = spoken_phrases(self.prose.text)
        for found in find_contrasts(in_english(self.prose.text)) if rows else ():
            row = rows[found.line - 1]
            yield found._replace(
                line=row.line, words=plain(clip_lines(self.prose.text).split("\n")[row.line - 1])[:200]
            )

    @cached_property
    def message(self) -> MessageAdvice | None:
        """The sentence of the final errors that says what to do, or what is wrong with the request."""
        return advice_in_message(self.errors, f"{self.prose.text}\n{self.snapshot.cell}")

    @cached_property
    def first_error(self) -> FinalError | None:
        """The printed error that ended the program, if neither the ranks nor an exception at hand say it."""
        known = self.snapshot.exception is not None or self.snapshot.verdict is not None
        return None if known else next(iter(self.errors), None)

    @cached_property
    def mentions_several(self) -> bool:
        """True if anything mentions several processes, hosts or devices."""
        return speaks_of_several(self.snapshot)

    @cached_property
    def is_distributed(self) -> bool:
        """True if the failed program is one of several processes, or drives several devices."""
        return is_distributed(self.snapshot)
