"""Flight-recorder dumps: read with care, matched in one pass, reduced to a verdict."""
