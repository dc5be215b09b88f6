"""Where the tests and the repository are, whatever folder a test stands in."""

from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
