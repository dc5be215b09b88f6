from datasets import load_dataset

if __name__ == "__main__":
    data = load_dataset("mine").map(len, num_proc=8)
