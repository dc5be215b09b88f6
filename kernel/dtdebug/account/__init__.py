"""The account of a failure: what was refused, and where the program made the value that was refused."""
