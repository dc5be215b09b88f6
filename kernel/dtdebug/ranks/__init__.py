"""Many ranks: what each one says of itself, gathered and compared."""
