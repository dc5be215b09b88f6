"""Reads configuration in JSON, YAML and TOML."""
