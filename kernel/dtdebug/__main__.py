"""`python -m dtdebug`."""

from dtdebug.cli.main import run

run()
