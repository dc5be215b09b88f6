"""`dtdebug run --watch`: what must hold in every healthy training is looked at while it runs.

`inside` notes in each rank, `notes` reads that, `judge` compares the ranks. Nothing of ours communicates.
"""
