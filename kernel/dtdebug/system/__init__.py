"""What the operating system shows of a process that seems stuck: files of /proc, read without stopping it."""
