"""Verdicts on ranks from printed text."""
