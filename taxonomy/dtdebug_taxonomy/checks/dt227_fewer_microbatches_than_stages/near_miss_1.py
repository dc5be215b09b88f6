from mine import PipelineStage, Schedule1F1B

stage = PipelineStage("part", 0, 4, "cpu")
schedule = Schedule1F1B(stage, 2)
