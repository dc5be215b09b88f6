"""Analyses that several checks share."""
