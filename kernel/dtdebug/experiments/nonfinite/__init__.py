"""Implements `dtdebug run --nan`: at the first loss or gradient that is not finite, says where it arises.

`inside` checks each step in each rank and repeats the one that went wrong; `judge` joins what the ranks have found.
"""
