"""Other frameworks: SAM in Lightning and Transformers, and trained networks as files that other programs read."""
