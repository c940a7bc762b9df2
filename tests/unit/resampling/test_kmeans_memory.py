"""A separation within memory: fewer restarts at a time, a sentence where nothing helps."""

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from evenly import memory
from evenly.errors import SetupError
from evenly.resampling import kmeans, separate

NUM = 3000


class Largest(TorchDispatchMode):
    """The size of the largest tensor that is made within the context."""

    numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.numel = max([self.numel, *(t.numel() for t in tree_leaves(out) if isinstance(t, torch.Tensor))])
        return out


def outputs() -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    far = torch.rand(NUM, 1, generator=rng) < 0.3
    return torch.randn(NUM, 2, generator=rng) + torch.where(far, torch.tensor([0.0, 6.0]), torch.tensor([6.0, 0.0])), (
        torch.zeros(NUM, dtype=torch.int64)
    )


def test_restarts_are_made_a_few_at_a_time_where_memory_is_short(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Largest() as usual:
        expected = separate(*outputs(), restarts=40, silhouette_sample=0)
    assert usual.numel >= 40 * NUM
    assert not caplog.text
    monkeypatch.setattr(kmeans, "_LITTLE", 0)
    monkeypatch.setenv("EVENLY_MEMORY", str(3 * NUM * 12 / 1e9))
    with Largest() as short:
        found = separate(*outputs(), restarts=40, silhouette_sample=0)
    assert short.numel <= 4 * NUM
    assert torch.equal(found.hard, expected.hard)
    assert found.inertia == expected.inertia
    assert "makes 3 of its 40 restarts at a time" in caplog.text
    assert "That is slower" in caplog.text


def test_a_class_that_does_not_fit_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free", lambda _: 1000)
    with pytest.raises(SetupError, match=r"the largest class, 3,000 examples, need 0\.0 GB.*separate a part"):
        separate(*outputs())
