import os
from pathlib import Path

if not os.path.exists("results"):
    os.makedirs("results")
cache = Path("cache")
if not cache.exists():
    cache.mkdir()
