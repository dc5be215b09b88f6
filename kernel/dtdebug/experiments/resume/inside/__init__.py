"""Code that runs inside the user's ranks; it uses torch only after the program has imported it."""
