import os

# only looks whether the user has set it
if os.environ.get("NCCL_BLOCKING_WAIT") == "1":
    print("collectives block")
