"""Which rank is responsible, as far as the printed text shows it."""
