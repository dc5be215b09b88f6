import os

names = {"RANK": 0}
if names["RANK"] == 0 and os.environ.get("DEBUG", 0) == 0:
    print("RANK", len(os.environ["RANK"]) == 1)
