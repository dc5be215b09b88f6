import os
import uuid

from accelerate import Accelerator

if __name__ == "__main__":
    accelerator = Accelerator()
    os.makedirs("runs/" + str(uuid.uuid4()), exist_ok=True)  # dt: DT607
