class Env:
    def __init__(self, world_size, global_rank, num_nodes):
        self.global_rank = global_rank
        self.num_nodes = num_nodes

    def node(self):
        return self.global_rank // self.num_nodes  # dt: DT225
