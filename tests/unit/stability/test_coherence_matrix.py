"""A tensor in place of a problem is answered with the call that makes a problem of it."""

from typing import Any

import pytest
import torch

from evenly import stability
from evenly.errors import UsageError


@pytest.mark.parametrize(
    ("given", "call"),
    [
        (torch.eye(3), r"Problem\.from_factors\(tensor\)"),
        (torch.eye(3)[None], r"coherence_of_hessians\(tensor\)"),
        ([[1.0]], r"Problem\.from_factors\(tensor\)"),
    ],
)
def test_coherence_of_a_tensor_names_the_call_to_make(given: Any, call: str) -> None:
    with pytest.raises(UsageError, match=call):
        stability.coherence(given)
