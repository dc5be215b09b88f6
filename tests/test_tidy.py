"""The whole knowledge held together: every id has a page, a sample and a user, and nothing is left over."""

from dtdebug_taxonomy.knowledge import load
from dtdebug_taxonomy.tidy import problems


def test_knowledge_is_tidy(samples):
    """Every rule of `tidy` holds for the shipped knowledge."""
    assert problems(load(), samples) == []
