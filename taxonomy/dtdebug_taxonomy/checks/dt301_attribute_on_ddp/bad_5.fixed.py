import torch


class Reranker:
    def __init__(self, model, args):
        self.model = model
        self.args = args

    def rerank(self, batches):
        if self.args.n_gpu > 1:
            self.model = torch.nn.DataParallel(self.model)
        for batch in batches:
            getattr(self.model, "module", self.model).generate(batch, max_new_tokens=self.args.max_length)  # dt: DT301
