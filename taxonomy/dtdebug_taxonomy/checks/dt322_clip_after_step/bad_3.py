import torch

opt_d = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
for real in loader:
    for _ in range(5):
        opt_d.zero_grad()
        critic(real).mean().backward()
        opt_d.step()
        torch.nn.utils.clip_grad_value_(critic.parameters(), 0.01)  # dt: DT322
