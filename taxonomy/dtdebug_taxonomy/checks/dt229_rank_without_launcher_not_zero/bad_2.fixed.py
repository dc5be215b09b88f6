import os

RANK = int(os.getenv("RANK", "0"))  # dt: DT229
