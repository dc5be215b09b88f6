import os
from datetime import datetime

if __name__ == "__main__":
    os.makedirs(os.path.join("runs", datetime.now().strftime("%Y%m%d")), exist_ok=True)
