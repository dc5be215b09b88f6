"""Repeats the forward and backward passes of a step within a rank, on a copy of the model and from recorded inputs."""
