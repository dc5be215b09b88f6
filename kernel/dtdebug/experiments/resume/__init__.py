"""Implements `dtdebug run --resume-check`: compares a resumed run with one that was not interrupted.

`inside` takes notes in each rank, `runs` makes the three runs, `records` reads the notes, `compare` finds what differs,
and `answer` words it.
"""
