"""What a step costs beside its passes: calls into ATen and memory, whatever the number of tensors."""

import gc
from collections import Counter

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import evenly


class Calls(TorchDispatchMode):
    """Counts the operators that reach ATen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # Handing out an alias (detach, .data) runs no kernel.
        if func is not torch.ops.aten.detach.default:
            self.seen[str(func)] += 1
        return func(*args, **(kwargs or {}))


def deep(layers: int, width: int = 3) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)])


@pytest.mark.parametrize("layers", [2, 40])
@pytest.mark.parametrize("rule", [evenly.SAM, evenly.ASAM, evenly.USAM])
def test_at_most_ten_calls_are_added_to_the_two_passes(rule, layers: int) -> None:
    model = deep(layers)
    if rule is evenly.ASAM:
        model = nn.Sequential(*model)
    x = torch.ones(2, 3)
    sam = rule(model)
    sam.backward(lambda: model(x).sum())
    model.zero_grad()
    with Calls() as two:
        for _ in range(2):
            model(x).sum().backward()
            model.zero_grad()
    with Calls() as ours:
        sam.backward(lambda: model(x).sum())
    added = ours.seen - two.seen
    assert 0 < added.total() <= 10, added


def storages() -> int:
    """Bytes of all tensors that live, each storage once."""
    sizes = {}
    for thing in gc.get_objects():
        if type(thing) in (Tensor, nn.Parameter):
            for t in (thing, thing.grad if thing.is_leaf else None):
                if t is not None:
                    sizes[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
    return sum(sizes.values())


def test_the_second_pass_begins_with_one_copy_of_the_parameters_more_and_no_old_gradient() -> None:
    model = deep(4, width=64)
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    sam = evenly.SAM(model)
    x = torch.ones(1, 64)
    live = []

    def closure() -> Tensor:
        gc.collect()
        live.append(storages())
        return model(x).sum()

    sam.backward(closure)
    extra = (live[1] - live[0]) / size
    assert 0.9 < extra < 1.1, extra
    model.zero_grad()
    gc.collect()
    assert storages() <= live[0] + 1024


def test_lsam_keeps_of_a_sequential_body_what_a_plain_pass_keeps_and_calls_it_once() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    lsam, x, calls = evenly.LSAM(model), torch.ones(5, 3), []
    model[0].register_forward_hook(lambda *_: calls.append(0))
    with lsam.replay.recording():
        model(x)
    assert [len(values) for values in lsam.replay.kept.values()] == [1]
    with lsam.replay.replaying():
        model(x)
    assert calls == [0]
    assert not any(lsam.replay.kept.values())
    lsam.replay.forget()
