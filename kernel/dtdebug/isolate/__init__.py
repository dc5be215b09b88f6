"""Runs a failing job again, each time with something changed, and says which component is responsible.

`command` knows the launcher, `workspace` gives each run a copy of the working directory, `inside` is what observes and
changes things in the ranks, `runner` runs, by the `surroundings` that it makes, `outcome` reads what a run has left,
`company` and `pace` how fast it was, `identity` says whether two failures are the same, `search` decides what to
run next, of a job that fails only sometimes `sometimes` by `odds`; `rows`, `findings` and `table` say what was found.
"""
