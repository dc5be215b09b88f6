"""Trial of a fix: the job in a copy of its folder, with a diff applied."""
