"""What several checks need."""
