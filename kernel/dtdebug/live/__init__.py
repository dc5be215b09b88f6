"""Ranks that are running: started, asked, watched and judged."""
