import tqdm
from accelerate import Accelerator


def main():
    accelerator = Accelerator()
    if accelerator.is_main_process:
        print("start")
    for step in tqdm.tqdm(range(10), disable=not accelerator.is_main_process):  # dt: DT608
        accelerator.backward(loss(step))


main()
