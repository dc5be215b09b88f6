"""Runs a failing job repeatedly, each time with one change, and reports the responsible component.

`command` knows the launcher, `workspace` gives each run a copy of the working directory, `inside` observes and changes
things in the ranks, `runner` runs the job in the `surroundings` that it makes, `outcome` reads the results of a run,
`company` and `pace` measure its speed, `identity` compares two failures, `search` decides what to run next, with
`sometimes` and `odds` for a job that fails only sometimes; `rows`, `findings` and `table` report the results.
"""
