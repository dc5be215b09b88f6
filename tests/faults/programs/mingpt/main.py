import os

import torch
from char_dataset import CharDataset, DataConfig
from model import GPT, GPTConfig
from torch.distributed import destroy_process_group, init_process_group
from torch.utils.data import random_split
from trainer import Trainer, TrainerConfig


def get_train_objs(data_config, gpt_config):
    dataset = CharDataset(data_config)
    train_len = int(len(dataset) * data_config.train_split)
    train_set, test_set = random_split(dataset, [train_len, len(dataset) - train_len])
    gpt_config.vocab_size = dataset.vocab_size
    gpt_config.block_size = dataset.block_size
    model = GPT(gpt_config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    return model, optimizer, train_set, test_set


def main():
    torch.manual_seed(7)
    init_process_group("gloo")
    folder = os.path.dirname(os.path.abspath(__file__))
    config = TrainerConfig(snapshot_path=os.path.join(folder, "gpt_snapshot.pt"))
    model, optimizer, train_set, test_set = get_train_objs(DataConfig(), GPTConfig())
    trainer = Trainer(config, model, optimizer, train_set, test_set)
    trainer.train()
    destroy_process_group()


if __name__ == "__main__":
    main()
