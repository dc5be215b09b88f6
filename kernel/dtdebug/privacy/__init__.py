"""Secrets and control characters are taken out here before anything is shown or stored."""
