"""What a job left behind: dumps of the flight recorder, logs, traces of the profiler."""
