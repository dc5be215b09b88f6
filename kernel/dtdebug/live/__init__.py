"""The ranks of a notebook while they live: which of them the others wait for, told while the cell still hangs."""
