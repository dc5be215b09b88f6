"""Stacks that were saved as text or JSON, by whatever tool: processes, their ranks, and rounds of them."""

from dtdebug.recorded.stack_texts.other_programs import other_program
from dtdebug.recorded.stack_texts.rounds import Stacks, read_stacks
from dtdebug.recorded.stack_texts.sniff import is_stacks

__all__ = ["Stacks", "is_stacks", "other_program", "read_stacks"]
