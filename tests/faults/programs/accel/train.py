import argparse
import os

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, set_seed
from torch.utils.data import DataLoader, TensorDataset


def get_dataloaders(accelerator, batch_size):
    with accelerator.main_process_first():
        generator = torch.Generator().manual_seed(3)
        features = torch.rand(160, 12, generator=generator)
        labels = (features.sum(dim=1) > 6).long()
    train_set = TensorDataset(features[:112], labels[:112])
    eval_set = TensorDataset(features[112:], labels[112:])
    train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)
    eval_loader = DataLoader(eval_set, batch_size=batch_size)
    return train_loader, eval_loader


def build_model():
    return torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.Tanh(), torch.nn.Linear(24, 2))


def evaluate(accelerator, model, loader):
    model.eval()
    right, seen = 0, 0
    for features, labels in loader:
        with torch.no_grad():
            predictions = model(features).argmax(dim=-1)
        predictions, references = accelerator.gather_for_metrics((predictions, labels))
        right += (predictions == references).sum().item()
        seen += len(references)
    return right / seen


def training_function(args):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(11)
    train_loader, eval_loader = get_dataloaders(accelerator, args.batch_size)
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(model, optimizer, train_loader, eval_loader)
    for epoch in range(args.epochs):
        model.train()
        for step, (features, labels) in enumerate(train_loader):
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(features), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        accuracy = evaluate(accelerator, model, eval_loader)
        accelerator.print(f"epoch {epoch}: accuracy {accuracy:.3f}", flush=True)
        reports = gather_object([{"rank": accelerator.process_index, "loss": loss.item()}])
        accelerator.print(f"losses {[round(report['loss'], 3) for report in reports]}", flush=True)
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            state = accelerator.get_state_dict(model)
            torch.save(state, os.path.join(args.output, f"epoch_{epoch}.pt"))
    accelerator.end_training()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--output", default=os.path.dirname(os.path.abspath(__file__)))
    training_function(parser.parse_args())


if __name__ == "__main__":
    main()
