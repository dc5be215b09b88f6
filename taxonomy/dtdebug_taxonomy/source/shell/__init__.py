"""Reads shell scripts and the commands in them."""
