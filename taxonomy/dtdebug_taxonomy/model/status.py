"""The result of a reading in one word: the same in every command's JSON and in the answers to agents."""

from __future__ import annotations

from typing import Literal

Status = Literal[
    "failed", "program_error", "late", "exceeded", "healthy", "no_failure", "unread", "not_understood",
]  # fmt: skip
"""`failed`: a failure is recognised; `program_error`: an ordinary error of the program; `late`: a rank holds up the
others; `exceeded`: a limit of a comparison is; `healthy`: a measure shows that all is well; `no_failure`: nothing was
found, which proves little; `unread`: some of it could not be read; `not_understood`: too little of it is known."""
CLEAR: frozenset[Status] = frozenset({"healthy", "no_failure"})
"""Results after which a command ends with status 0: nothing is wrong as far as is known."""
