"""Works out the commands that a shell script would start on this host, without running it."""

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "sbatch"))
