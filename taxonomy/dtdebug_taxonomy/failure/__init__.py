"""Printed failures: lines without their prefixes, the events in them, and which event was first."""
