"""A run's own words that it is over and went well; a failure before them is one that it recovered from."""

import pytest

from dtdebug_taxonomy.logs.completion import is_completion


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("[supervisor] job finished successfully after 1 restart", True),
        ("Run exp-17 completed successfully", True),
        ("training is done", True),
        ("Monitored metric val_loss did not improve in the last 3 records. Signaling Trainer to stop.", True),
        ("process group initialized successfully", False),
        ("checkpoint saved successfully", False),
        ("the job failed after it started successfully", False),
    ],
)
def test_a_line_says_that_the_run_completed(line, completed):
    assert is_completion(line) is completed
