"""Twenty steps of every rule against its formula, written out again on one flat vector in NumPy.

The references of MSAM, VaSSO and WSAM follow their authors' code (MarlonBecker/MSAM, BingcongLi/VaSSO,
intelligent-machine-learning/dlrover), which keeps the weights displaced between steps or restores them by subtraction.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import evenly
from evenly.rules import RULES

STEPS, LR, MU, DECAY = 20, 0.1, 0.9, 0.01
Gradient = Callable[[np.ndarray, int], np.ndarray]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()


def batch(step: int) -> tuple[Tensor, Tensor]:
    numbers = torch.Generator().manual_seed(step)
    return torch.randn(8, 4, dtype=torch.float64, generator=numbers), torch.randint(3, (8,), generator=numbers)


def flat(tensors) -> np.ndarray:
    return np.concatenate([t.detach().numpy().ravel() for t in tensors])


NET = network()
SHAPES = [p.shape for p in NET.parameters()]
WEIGHTS = flat([torch.full(p.shape, float("weight" in name)) for name, p in NET.named_parameters()])
HEAD = flat([torch.full(p.shape, float(name.startswith("2"))) for name, p in NET.named_parameters()])


def gradient(w: np.ndarray, step: int) -> np.ndarray:
    tensors, start = [], 0
    for shape in SHAPES:
        tensors.append(torch.tensor(w[start : start + shape.numel()].reshape(shape), requires_grad=True))
        start += shape.numel()
    x, y = batch(step)
    a, b, c, d = tensors
    return flat(torch.autograd.grad(F.cross_entropy(torch.tanh(x @ a.T + b) @ c.T + d, y), tensors))


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.sqrt((v**2).sum())


def beside(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a - (a @ b) / (b @ b) * b


def stretched(w: np.ndarray, d: np.ndarray, eta: float = 0.01) -> np.ndarray:
    t = np.where(WEIGHTS > 0, np.abs(w) + eta, 1.0)
    return t**2 * d / np.sqrt(((t * d) ** 2).sum())


# A reference is sent the weights of each step and yields the gradient that is left for SGD.
def sam(rho: float, climb=lambda w, g: unit(g)) -> Iterator[np.ndarray]:
    w = yield np.zeros(0)
    for step in range(STEPS):
        w = yield gradient(w + rho * climb(w, gradient(w, step)), step)


def lsam(rho: float) -> Iterator[np.ndarray]:
    return sam(rho, lambda w, g: unit(g * HEAD))


def usam(rho: float) -> Iterator[np.ndarray]:
    return sam(rho, lambda w, g: g)


def asam(rho: float) -> Iterator[np.ndarray]:
    return sam(rho, stretched)


def gsam(rho: float, climb=lambda w, g: unit(g)) -> Iterator[np.ndarray]:
    w = yield np.zeros(0)
    for step in range(STEPS):
        g = gradient(w, step)
        there = gradient(w + rho * climb(w, g), step)
        w = yield there - 0.4 * beside(g, there)


def wsam(rho: float, climb=lambda w, g: unit(g)) -> Iterator[np.ndarray]:
    """The authors' with decouple=False: grad · α + (1 − α) · first gradient, α = γ/(1 − γ)."""
    alpha = 0.9 / (1 - 0.9)
    w = yield np.zeros(0)
    for step in range(STEPS):
        g = gradient(w, step)
        w = yield alpha * gradient(w + rho * climb(w, g), step) + (1 - alpha) * g


def looksam(rho: float, climb=lambda w, g: unit(g)) -> Iterator[np.ndarray]:
    w = yield np.zeros(0)
    sharp = np.zeros_like(w)
    for step in range(STEPS):
        g = gradient(w, step)
        if step % 5 == 0:
            there = gradient(w + rho * climb(w, g), step)
            sharp = beside(there, g)
            w = yield there
        else:
            w = yield g + 0.7 * np.linalg.norm(g) / np.linalg.norm(sharp) * sharp


def friendlysam(rho: float, climb=lambda w, g: unit(g)) -> Iterator[np.ndarray]:
    w = yield np.zeros(0)
    mean = None
    for step in range(STEPS):
        g = gradient(w, step)
        d = g if mean is None else g - mean
        mean = g if mean is None else 0.9 * mean + 0.1 * g
        w = yield gradient(w + rho * climb(w, d), step)


def vasso(rho: float, climb=lambda w, g: unit(g)) -> Iterator[np.ndarray]:
    w = yield np.zeros(0)
    ema = None
    for step in range(STEPS):
        g = gradient(w, step)
        ema = g if ema is None else (1 - 0.4) * ema + 0.4 * g
        w = yield gradient(w + rho * climb(w, ema), step)


def msam(rho: float) -> Iterator[np.ndarray]:
    """Without decay; the authors' whole optimizer, with decay and for AdamW, is below."""
    w = yield np.zeros(0)
    v = np.zeros_like(w)
    for step in range(STEPS):
        there = gradient(w - rho * unit(v) if v.any() else w, step)
        v = MU * v + there
        w = yield there


def random(rho: float) -> Iterator[np.ndarray]:
    from evenly.rng import generator

    w = yield np.zeros(0)
    for step in range(STEPS):
        numbers = generator(0, "perturbation", step, 0)
        noise = [torch.randn(shape, dtype=torch.float64, generator=numbers) for shape in SHAPES]
        w = yield gradient(w + rho * flat(noise), step)


ALL = (sam, lsam, usam, asam, gsam, wsam, looksam, friendlysam, vasso, msam, random)
REFERENCES = {each.__name__: each for each in ALL}
STRETCHED = ("sam", "gsam", "wsam", "looksam", "friendlysam", "vasso")


def built(name: str, net: nn.Module, rho: float, **options):
    kind = getattr(evenly, RULES[name].kind)
    return kind(net, **{"sigma" if name == "random" else "rho": rho, **options})


def check(name: str, reference: Iterator[np.ndarray], **options) -> None:
    net = network()
    sam = built(name, net, 0.2, **options)
    optimizer = torch.optim.SGD(net.parameters(), lr=LR, momentum=MU)
    w, v = flat(net.parameters()), np.zeros(0)
    next(reference)
    for step in range(STEPS):
        x, y = batch(step)
        sam.backward(lambda x=x, y=y: F.cross_entropy(net(x), y))
        optimizer.step()
        optimizer.zero_grad()
        g = reference.send(w)
        v = g if step == 0 else MU * v + g
        w = w - LR * v
        np.testing.assert_allclose(flat(net.parameters()), w, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_has_a_reference_and_keeps_to_it_for_twenty_steps(name: str) -> None:
    assert name in REFERENCES, f"write the formula of {name} again, as a reference in this file"
    check(name, REFERENCES[name](0.2))


@pytest.mark.parametrize("name", STRETCHED)
def test_adaptive_rules_climb_in_asams_ball(name: str) -> None:
    check(name, REFERENCES[name](0.2, stretched), adaptive=True)


def test_msam_is_its_authors_optimizer_with_weight_decay() -> None:
    """Their weights stay displaced; the velocity contains the decay of the displaced weights."""
    rho = 0.2
    net = network()
    sam = evenly.MSAM(net, rho=rho, momentum=MU, weight_decay=DECAY)
    optimizer = torch.optim.SGD(net.parameters(), lr=LR, momentum=MU, weight_decay=DECAY)
    displaced, v, inverse = flat(net.parameters()), None, 0.0
    for step in range(STEPS):
        x, y = batch(step)
        sam.backward(lambda x=x, y=y: F.cross_entropy(net(x), y))
        optimizer.step()
        optimizer.zero_grad()
        d = gradient(displaced, step) + DECAY * displaced
        v = np.zeros_like(displaced) if v is None else v
        home = displaced + rho * inverse * v
        v = MU * v + d
        home = home - LR * v
        inverse = 1 / (np.linalg.norm(v) + 1e-12)
        displaced = home - rho * inverse * v
        np.testing.assert_allclose(flat(net.parameters()), home, rtol=0, atol=1e-10)


def test_msam_is_its_authors_optimizer_for_adamw() -> None:
    """Their ascent is along exp_avg; the decay, apart from it, comes after the step there and before it in torch."""
    rho, lr, (b1, b2), eps = 0.2, 0.01, (0.9, 0.999), 1e-8
    net = network()
    sam = evenly.MSAM(net, rho=rho, momentum=b1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=lr, betas=(b1, b2), eps=eps, weight_decay=DECAY)
    displaced = flat(net.parameters())
    m, s, factor = np.zeros_like(displaced), np.zeros_like(displaced), 0.0
    for step in range(STEPS):
        x, y = batch(step)
        sam.backward(lambda x=x, y=y: F.cross_entropy(net(x), y))
        optimizer.step()
        optimizer.zero_grad()
        g = gradient(displaced, step)
        home = displaced + factor * m
        m, s = b1 * m + (1 - b1) * g, b2 * s + (1 - b2) * g**2
        denominator = np.sqrt(s) / np.sqrt(1 - b2 ** (step + 1)) + eps
        home = (1 - lr * DECAY) * home - lr / (1 - b1 ** (step + 1)) * m / denominator
        factor = rho / (np.linalg.norm(m) + 1e-12)
        displaced = home - factor * m
        np.testing.assert_allclose(flat(net.parameters()), home, rtol=0, atol=1e-10)
