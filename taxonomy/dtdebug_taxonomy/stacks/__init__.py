"""Reads stacks: whose code a frame is, and what a thread waits for."""
