"""Abstract interpretation that finds where ranks part before a call in which they wait for each other.

A value is equal on all ranks, or has origins that make it a rank's own (`origins`): its rank, its batches, its clock, a
file, a random number. A communicating call makes values equal. Each function is interpreted once, with its parameters
as symbols (`frame`, `expressions`), and summarized (`interpreter`); a decision by an own value before a collective is a
divergence (`decisions`).
"""
