"""The folder of a run: what ranks have written, read with care."""

VARIABLE = "DTDEBUG_RUN"
"""Environment variable that tells the agents of a job where its folder is."""
