"""Computes the index of the knowledge for a wheel: `python build_index.py FOLDER`, with our packages on the path."""

from __future__ import annotations

import sys
from pathlib import Path

from dtdebug.privacy.redact import secret_names, token_shapes
from dtdebug_taxonomy import checks
from dtdebug_taxonomy.inference import known_releases
from dtdebug_taxonomy.knowledge import cache
from dtdebug_taxonomy.knowledge.contracts import load_contracts
from dtdebug_taxonomy.knowledge.loader import load
from dtdebug_taxonomy.text import cause_likeness, similarity
from dtdebug_taxonomy.text.matchers import matchers_of


def main(folder: Path) -> None:
    """Request each part once."""
    cache.build_into(folder)
    knowledge = load()
    matchers = matchers_of(knowledge)
    _ = matchers.output_matcher, matchers.words_matcher
    cause_likeness.terms_of_causes(knowledge)
    similarity.models(knowledge)
    known_releases.matchers(knowledge)
    load_contracts()
    checks.load()
    secret_names.words("after")
    token_shapes.vendors()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
