import os

os.environ.setdefault("MASTER_PORT", "29500")
if "MASTER_PORT" not in os.environ:
    os.environ["MASTER_PORT"] = "29500"
