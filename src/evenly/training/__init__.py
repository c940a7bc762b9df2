"""Training: many small runs as one."""
