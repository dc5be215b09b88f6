"""What a shell script would start on this host: read and worked out, never run."""

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "sbatch"))
