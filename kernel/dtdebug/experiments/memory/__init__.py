"""Implements `dtdebug rehearse --memory`: the peak memory of each rank, without a GPU and without the other ranks.

`inside` runs one rank on tensors without data and adds up what is alive, `forecast` runs the ranks and reads the
results, and `answer` words them.
"""
