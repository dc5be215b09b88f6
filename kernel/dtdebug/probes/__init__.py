"""What this process can see of itself and of its devices. Each probe is optional and quick."""
