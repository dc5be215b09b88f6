"""Findings, and how likely they make each symptom and cause."""
