"""Runs a failing job repeatedly, each time with one change, and reports the responsible component.

`job_command` knows the launcher, `workspace` gives each run a copy of the working directory, `inside` observes and
changes things in the ranks, `runner` runs the job in the `environment_changes` that it makes, `run_outcome` reads the
results of a run, `cpu_contention` and `step_time` measure its speed, `failure_identity` compares two failures, `search`
decides what to run next, with `flaky_search` and `bayes_odds` for a job that fails only sometimes; `result_rows`,
`claims` and `render` report the results.
"""
