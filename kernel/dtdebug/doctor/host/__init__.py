"""What one host can tell of itself: devices, network, limits, software."""
