"""The diagnosis as notebooks show it."""
