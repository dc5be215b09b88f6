"""Text, Markdown, JSON and editor marks made of a diagnosis and of the knowledge."""
