"""What runs inside of the processes of a run: written for the standard library alone, it imports no torch itself."""
