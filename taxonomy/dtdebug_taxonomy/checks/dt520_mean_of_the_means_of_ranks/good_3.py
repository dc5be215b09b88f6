def masked_loss(losses, mask):
    return (losses * mask).sum() / mask.sum()


for batch in loader:
    masked_loss(*batch).backward()
