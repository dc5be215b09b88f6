import torch
from accelerate import Accelerator


def main(model, batches, optimizer):
    accelerator = Accelerator()
    model, optimizer = accelerator.prepare(model, optimizer)
    for batch in batches:
        accelerator.backward(model(batch).mean())
        optimizer.step()
    if accelerator.is_main_process:
        torch.save(accelerator.unwrap_model(model).state_dict(), "model.pt")  # dt: DT602


if __name__ == "__main__":
    main(torch.nn.Linear(2, 2), [], None)
