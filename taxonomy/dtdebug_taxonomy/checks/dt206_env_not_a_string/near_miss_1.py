import os

config = {"MASTER_PORT": 29500}
config["RANK"] = 0
settings = os.environ.copy()
settings["ATTEMPT"] = 1
del settings["ATTEMPT"]
port = os.environ.get("MASTER_PORT", 29500)
