"""What runs a job in order to learn from it: code of ours is then inside the ranks."""
