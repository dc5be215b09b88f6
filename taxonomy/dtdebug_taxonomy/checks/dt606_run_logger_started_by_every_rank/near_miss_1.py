import wandb

if __name__ == "__main__":
    wandb.init(project="mine")
