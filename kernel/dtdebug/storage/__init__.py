"""The folder of a run: reads what ranks have written, defensively."""

VARIABLE = "DTDEBUG_RUN"
"""Environment variable with the folder of the job, for its agents."""
