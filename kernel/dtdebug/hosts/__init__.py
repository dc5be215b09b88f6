"""A job on several hosts: which have come, what each has written, whether their launchers meet."""
