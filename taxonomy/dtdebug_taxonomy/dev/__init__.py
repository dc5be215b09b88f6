"""For maintainers: checks the knowledge, and makes the files of new symptoms and checks."""
