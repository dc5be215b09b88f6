"""How a diagnosis is shown in a notebook."""
