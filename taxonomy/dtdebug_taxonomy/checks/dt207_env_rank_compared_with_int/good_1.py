import os

rank = int(os.environ["RANK"])
if rank == 0 and os.environ["LOCAL_RANK"] == "0":
    print("main")
