"""Explanations of a failure: where one can come from is a module each; `table` says in which order they stand."""
