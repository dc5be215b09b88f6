"""The ranks of a notebook: which of them the others wait for, said while the cell still hangs."""
