"""Plain types: what is known of a failure and of its ranks."""
