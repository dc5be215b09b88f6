"""The course of a run: its collectives recorded, compared, rehearsed and replayed."""
