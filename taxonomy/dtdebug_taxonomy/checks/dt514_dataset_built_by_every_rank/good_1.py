from accelerate import Accelerator
from datasets import load_dataset


def main(tokenize):
    accelerator = Accelerator()
    with accelerator.main_process_first():
        return load_dataset("mine").map(tokenize, num_proc=8)


if __name__ == "__main__":
    main(len)
