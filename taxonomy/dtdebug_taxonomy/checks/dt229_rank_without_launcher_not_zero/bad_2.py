import os

RANK = int(os.getenv("RANK", "1"))  # dt: DT229
