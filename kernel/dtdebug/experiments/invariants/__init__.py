"""Implements `dtdebug run --watch`: checks training invariants while the job runs.

`inside` takes notes in each rank, `read_records` reads them, and `judge` compares the ranks. It does not communicate
itself.
"""
