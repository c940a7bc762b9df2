"""The training loop with its checkpoints, evaluation and many devices; comparisons; and ensembles of small networks."""
