"""`python -m dtdebug`."""

from dtdebug.cli import run

run()
