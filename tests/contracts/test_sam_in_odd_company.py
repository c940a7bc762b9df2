"""What SAM meets in models and scripts of other people: replaced parameters, caches, own BatchNorms, odd precisions."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, parametrize

import evenly
from evenly.errors import UsageError
from evenly.optim import SharpnessAware
from evenly.rules import RULES

COMPLEX = [name for name in RULES if name != "lsam"]  # LSAM needs a model


def build(name: str, params, **options):
    kind = getattr(evenly, RULES[name].kind)
    if name == "random":
        options["sigma"] = options.pop("rho", RULES[name].rho)
    return kind(params, **options)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))


def batch(seed: int = 1) -> tuple[Tensor, Tensor]:
    numbers = torch.Generator().manual_seed(seed)
    return torch.randn(8, 4, generator=numbers), torch.randint(3, (8,), generator=numbers)


def test_an_optimizer_over_a_part_of_the_model_ends_the_step_of_all_of_it() -> None:
    """The gradients of the rest are never cleared, so that they would look like those of earlier micro-batches."""
    model, (x, y) = network(), batch()
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
    sam = evenly.LookSAM(model, k=2)
    for _ in range(4):
        sam.backward(lambda: F.cross_entropy(model(x), y))
        optimizer.step()
        optimizer.zero_grad()
    assert (sam.num_steps, sam.micro) == (4, 0)


@pytest.mark.parametrize("options", [{"every": 2}, {"rho": lambda step: 0.0 if step < 3 else 0.3}, {}])
def test_msam_follows_the_optimizers_momentum_through_plain_steps(options: dict) -> None:
    torch.manual_seed(0)
    w = nn.Parameter(torch.randn(3, dtype=torch.float64))
    curvature = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    sam = evenly.MSAM([w], **options)
    for _ in range(6):
        sam.backward(lambda: (curvature * w**2).sum() / 2)
        optimizer.step()
        optimizer.zero_grad()
        sam.begin()
        torch.testing.assert_close(sam.memory.known[0], optimizer.state[w]["momentum_buffer"])


class OwnNorm(nn.BatchNorm1d):
    """A BatchNorm that keeps its statistics itself, whatever `track_running_stats` says."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.running_mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            self.num_batches_tracked += 1
        return (x - x.mean(0)) * self.weight + self.bias


class FirstSeen(nn.Module):
    """A running mean that begins with the first batch; until then its buffer is None."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", None)

    def forward(self, x: Tensor) -> Tensor:
        now = x.detach().mean(0)
        self.mean = now if self.mean is None else 0.9 * self.mean + 0.1 * now
        return x


@pytest.mark.parametrize("name", RULES)
def test_a_batchnorm_with_a_forward_of_its_own_advances_once(name: str) -> None:
    model, x = nn.Sequential(nn.Linear(4, 3), OwnNorm(3), nn.Linear(3, 2)), batch()[0]
    sam = build(name, model, rho=1.0)
    for step in range(2):
        sam.backward(lambda: model(x).pow(3).sum())
        assert model[1].num_batches_tracked == step + 1


@pytest.mark.parametrize("name", [name for name in RULES if name not in ("msam", "random")])
def test_a_buffer_that_the_first_pass_makes_is_that_of_the_first_pass(name: str) -> None:
    model, x = nn.Sequential(nn.Linear(4, 3), FirstSeen(), nn.Linear(3, 2)), batch()[0]
    first = model[0](x).detach().mean(0)
    build(name, model, rho=1.0).backward(lambda: model(x).pow(3).sum())
    torch.testing.assert_close(model[1].mean, first, rtol=0, atol=0)


def test_a_buffer_that_was_made_in_inference_mode_advances_too() -> None:
    model, x = nn.Sequential(nn.Linear(4, 3), FirstSeen(), nn.Linear(3, 2)), batch()[0]
    with torch.inference_mode():
        model(x)
    once = 0.9 * model[1].mean + 0.1 * model[0](x).detach().mean(0)
    evenly.SAM(model, rho=1.0).backward(lambda: model(x).pow(3).sum())
    torch.testing.assert_close(model[1].mean, once)


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("mixed", [False, True])
def test_lazily_conjugated_gradients_are_gradients(name: str, mixed: bool) -> None:
    """Torch conjugates by a flag, and such a gradient cannot be viewed as real numbers."""
    torch.manual_seed(0)
    z, start = torch.randn(3, dtype=torch.complex128), torch.randn(3, dtype=torch.complex128)
    found = []
    for conjugate in (torch.conj, lambda t: torch.conj(t).resolve_conj()):
        w, b = nn.Parameter(start.clone()), nn.Parameter(torch.ones(3, dtype=torch.float64))
        params = [w, b] if mixed else [w]
        sam = build(name, params, rho=0.1)
        for _ in range(3):
            sam.backward(lambda w=w, b=b, c=conjugate: ((c(w) * z).real ** 4 / 9 + b).sum() ** 2 / 9)
            with torch.no_grad():
                for p in params:
                    p -= 0.01 * p.grad
            w.grad = b.grad = None
        found.append(w.detach())
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("name", ["sam", "asam", "lsam", "gsam", "friendlysam", "vasso"])
def test_small_gradients_of_half_precision_weights_move_them_all_the_way(name: str) -> None:
    """ρ/‖g‖ has more digits before the point than half precision has; the displacement has not."""
    at = []
    for dtype in (torch.float16, torch.float32):
        model = nn.Sequential(nn.Linear(2, 1, bias=False)).to(dtype)
        nn.init.ones_(model[0].weight)
        seen: list[Tensor] = []

        def closure(model: nn.Module = model, seen: list[Tensor] = seen) -> Tensor:
            seen.append(model[0].weight.detach().float().clone())
            return (model(torch.eye(2, dtype=model[0].weight.dtype)).float() * 5e-7).sum()

        options = {"head": "0"} if name == "lsam" else {}
        build(name, model, rho=0.5, **options).backward(closure)
        at.append(seen[-1])
    assert (at[1] - 1).norm() > 0.2
    torch.testing.assert_close(at[0], at[1], rtol=5e-3, atol=0)


def test_the_factor_of_a_loss_need_not_fit_the_precision_of_the_weights() -> None:
    w = nn.Parameter(torch.ones(3, dtype=torch.float16))
    loss = evenly.SAM([w], rho=0.0).loss(lambda: 1e-4 * (w.float() ** 2).sum())
    (2.0**17 * loss).backward()
    torch.testing.assert_close(w.grad, torch.full((3,), 2e-4 * 2**17).half(), rtol=2e-3, atol=0)


def replace_head(model: nn.Sequential) -> None:
    model[2] = nn.Linear(6, 3)


def add_layer(model: nn.Sequential) -> None:
    model.append(nn.Linear(3, 3))


def reparametrise(model: nn.Sequential) -> None:
    parametrizations.weight_norm(model[2])


@pytest.mark.parametrize("change", [replace_head, add_layer, reparametrise])
@pytest.mark.parametrize("where", [None, "2.*"])
def test_parameters_that_were_replaced_or_added_since_are_refused_at_the_first_step(change, where) -> None:
    model, (x, y) = network(), batch()
    sam = evenly.SAM(model, where=where)
    change(model)
    with pytest.raises(UsageError, match=r"2\.|3\."):
        sam.backward(lambda: F.cross_entropy(model(x), y))


class Symmetric(nn.Module):
    """A parametrisation whose gradient needs no saved values."""

    def forward(self, weight: Tensor) -> Tensor:
        return weight.triu() + weight.triu(1).mT


@pytest.mark.parametrize("name", [name for name in RULES if name != "lsam"])
def test_cached_parametrisations_do_not_hide_the_displacement(name: str) -> None:
    x = batch()[0]
    found = []
    for cached in (False, True):
        torch.manual_seed(0)
        layer = nn.Linear(4, 4)
        parametrize.register_parametrization(layer, "weight", Symmetric())
        sam = build(name, layer, rho=1.0)
        for _ in range(2):
            layer.zero_grad()
            if cached:
                with parametrize.cached():
                    sam.backward(lambda layer=layer: layer(x).pow(2).sum())
                    at_home = layer(x)
            else:
                sam.backward(lambda layer=layer: layer(x).pow(2).sum())
                at_home = layer(x)
            with torch.no_grad():
                for p in layer.parameters():
                    p -= 0.01 * p.grad
        found.append((layer.parametrizations.weight.original.grad, at_home))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.parametrize("name", RULES)
def test_what_a_rule_remembers_follows_the_precision_of_the_model(name: str) -> None:
    model, (x, y) = network(), batch()
    sam = build(name, model)
    for _ in range(2):
        sam.backward(lambda: F.cross_entropy(model(x), y))
        model.zero_grad()
    model.double()
    for _ in range(2):
        sam.backward(lambda: F.cross_entropy(model(x.double()), y))
        assert all(p.grad.dtype == p.dtype == torch.float64 for p in model.parameters())
        model.zero_grad()


def test_hooks_that_a_closures_own_backward_would_fire_twice_are_refused() -> None:
    model, (x, y) = network(), batch()
    optimizer = SharpnessAware(torch.optim.SGD(model.parameters(), lr=0.1), evenly.SAM(model))
    model[0].weight.register_post_accumulate_grad_hook(lambda p: None)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    with pytest.raises(UsageError, match=r"post-accumulate-grad hooks.*0\.weight.*sam\.backward"):
        optimizer.step(closure)


def test_a_parameter_in_two_groups_is_refused() -> None:
    w = nn.Parameter(torch.ones(2))
    with pytest.raises(UsageError, match=r"in two parameter groups"):
        evenly.SAM([{"params": [w], "rho": 0.1}, {"params": [w], "rho": 0.5}])


def test_a_closure_that_calls_backward_is_recognised_although_the_first_layer_is_frozen() -> None:
    model, (x, _) = network(), batch()
    model[0].requires_grad_(False)

    def closure() -> Tensor:
        loss = model(x).sum()
        loss.backward()
        return loss

    with pytest.raises(UsageError, match=r"the closure changed \.grad"):
        evenly.SAM(model).backward(closure)
