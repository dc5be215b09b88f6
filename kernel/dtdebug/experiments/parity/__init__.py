"""Implements `dtdebug run --parity`: is a step of all ranks the step that one process would take?

`inside` notes chosen steps in each rank and compares them on one; `judge` names what differs, and by which factor.
"""
