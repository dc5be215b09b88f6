import deepspeed

generator, *_ = deepspeed.initialize(model=g, config=config)
critic, *_ = deepspeed.initialize(model=d, config=config)
for i, batch in enumerate(loader):
    critic.backward(critic(batch))
    critic.step()
    if i % 5 == 0:  # the generator learns every fifth time
        generator.backward(generator(batch))
        generator.step()
