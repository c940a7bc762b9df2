"""One training loop, and what keeps it going: checkpoints, evaluation, many devices, ensembles."""
