"""The knowledge: its schema, how it is loaded and cached, and its catalogues."""
