"""The folder of a run: what ranks have written, read with care."""
