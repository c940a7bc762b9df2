"""The identity of a computation, read from its source: unchanged by renaming, changed by another formula."""
