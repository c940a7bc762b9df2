"""The toy distributions of the three papers."""
