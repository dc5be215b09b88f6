def train(generator, critic, noise, optimizer_g, optimizer_c):
    critic(generator(noise)).mean().backward()
    optimizer_c.zero_grad()
    optimizer_g.step()


def with_closure(model, x, optimizer):
    def closure():
        loss = model(x).mean()
        loss.backward()
        return loss

    closure().backward()
    optimizer.zero_grad()
    optimizer.step(closure)
