"""Facts about one host: devices, network, limits, software."""
