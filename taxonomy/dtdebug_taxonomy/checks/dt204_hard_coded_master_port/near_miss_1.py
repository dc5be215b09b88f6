import os

port = os.environ.get("MASTER_PORT", "29500")
table = {"MASTER_PORT": "29500"}
table["MASTER_PORT"] = "29501"
print("tcp://127.0.0.1:29500", port)
