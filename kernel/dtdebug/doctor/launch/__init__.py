"""Launch commands, scripts and host files: how a job would be started."""
