"""The collectives of a job as a file that is reviewed: `rehearse --save`, `rehearse --against`, `run --contract`."""
