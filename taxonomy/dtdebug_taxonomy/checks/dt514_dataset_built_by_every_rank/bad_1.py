from accelerate import Accelerator
from datasets import load_dataset


def main(tokenize):
    accelerator = Accelerator()
    data = load_dataset("mine")
    return accelerator, data.map(tokenize, batched=True, num_proc=8)  # dt: DT514


if __name__ == "__main__":
    main(len)
