"""Starts two ranks, as a launcher does."""

import os
import subprocess
import sys
from pathlib import Path

libraries = Path("libraries")
(libraries / "large_model").mkdir(parents=True, exist_ok=True)
(libraries / "large_model" / "__init__.py").write_text("NAME = 'large model'\n")
os.environ["PYTHONPATH"] = str(libraries.absolute())

RANK = "import os, large_model; print(f'rank {os.environ[\"RANK\"]} has the model', flush=True)"

ranks = []
for rank in range(2):
    environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"}
    ranks.append(subprocess.Popen([sys.executable, "-c", RANK], env=environment))
sys.exit(max(rank.wait() for rank in ranks))
