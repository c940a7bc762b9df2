"""What a piece of work computes, read from its source: renaming leaves it, another formula does not."""
