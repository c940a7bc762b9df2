"""What torch keeps of the weights while they stay the same, and must forget when they move."""

import torch
from torch.nn.utils import parametrize


def forget_cached_weights() -> None:
    """Forget the casts of weights that autocast keeps, and the weights that `parametrize.cached()` keeps."""
    torch.clear_autocast_cache()
    if parametrize._cache_enabled:
        parametrize._cache.clear()
