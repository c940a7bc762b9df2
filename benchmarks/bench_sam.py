"""The SAM family against the least it could cost: its passes and one optimizer step, in turns in one process."""

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import evenly
from benchmarks.harness import Missing, benchmark, interleaved
from benchmarks.sam_by_hand import BY_HAND, davda54
from evenly import LookSAM
from evenly.rules import RULES

Step = Callable[[], object]


class Problem(NamedTuple):
    """A network, what it is given, the loss of its outputs, and how many steps make one turn."""

    model: nn.Sequential
    x: Tensor
    criterion: Callable[[Tensor], Tensor]
    turns: int

    def loss(self) -> Tensor:
        return self.criterion(self.model(self.x))


def tiny() -> Problem:
    """The toy of Springer et al. in size: 4-100-100-1, batch 5."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 1))
    x, y = torch.randn(5, 4), torch.rand(5, 1).round()
    return Problem(model, x, lambda out: F.binary_cross_entropy_with_logits(out, y), 200)


def mlp() -> Problem:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3072, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    x, y = torch.randn(128, 3072), torch.randint(10, (128,))
    return Problem(model, x, lambda out: F.cross_entropy(out, y), 10)


def conv3() -> Problem:
    """The 3-conv network of Springer et al.: 3×64×32 images, batch 100, 102,978 parameters."""
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(3, 32, 5, stride=2), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU()),
        *(nn.Conv2d(64, 128, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(128 * 6 * 2, 2)),
    )
    x, y = torch.randn(100, 3, 64, 32), torch.randint(2, (100,))
    return Problem(model, x, lambda out: F.cross_entropy(out, y), 4)


def repeated(step: Step, num: int) -> Step:
    def steps() -> None:
        for _ in range(num):
            step()

    return steps


def passes(problem: Problem, num: int) -> Step:
    """`num` × (forward + backward) and one SGD step: what `num` passes cannot cost less than."""
    model, loss, turns = problem.model, problem.loss, problem.turns
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step() -> None:
        for _ in range(num):
            optimizer.zero_grad()
            loss().backward()
        optimizer.step()

    return repeated(step, turns)


def passes_and_walks(problem: Problem) -> Step:
    """The same two passes and step with the walks over memory that SAM cannot do without: a norm, and w + ε, once."""
    model, loss, turns = problem.model, problem.loss, problem.turns
    params = list(model.parameters())
    optimizer = torch.optim.SGD(params, lr=1e-4)
    there = [torch.empty_like(p) for p in params]

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        with torch.no_grad():
            torch._foreach_norm([p.grad for p in params])
            for p, new in zip(params, there, strict=True):
                torch.add(p, p.grad, alpha=1e-3, out=new)
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return repeated(step, turns)


def family(problem: Problem, rule: Callable[..., evenly.SAM]) -> Step:
    model, loss, turns = problem.model, problem.loss, problem.turns
    optimizer, sam = torch.optim.SGD(model.parameters(), lr=1e-4), rule(model)

    def step() -> None:
        optimizer.zero_grad()
        sam.backward(loss)
        optimizer.step()

    return repeated(step, turns)


def peer(problem: Problem, name: str = "SAM") -> Step:
    """The step of pytorch_optimizer's class, as its documentation shows it; GSAM's is given the outputs' loss."""
    try:
        import pytorch_optimizer
    except ImportError as error:
        raise Missing('Install the peer: pip install "evenly[dev]".') from error
    model, loss = problem.model, problem.loss
    params, base = model.parameters(), torch.optim.SGD
    options = {"rho": 0.05, "lr": 1e-4}
    if name == "GSAM":
        constant = type("Constant", (), {"step": lambda self: 0.05})()
        gsam = pytorch_optimizer.GSAM(params, base(model.parameters(), lr=1e-4), model, constant)

        def gsam_step() -> None:
            gsam.set_closure(lambda out, _: problem.criterion(out), problem.x, None)
            gsam.step()

        return repeated(gsam_step, problem.turns)
    if name == "ASAM":
        optimizer: Any = pytorch_optimizer.SAM(params, base, adaptive=True, **options)
    elif name == "WSAM":
        optimizer = pytorch_optimizer.WSAM(model, params, base, decouple=False, **options)
    else:
        optimizer = getattr(pytorch_optimizer, name)(params, base, **options)

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    def step() -> None:
        if name != "WSAM":  # whose step calls the closure twice itself
            closure()
        optimizer.step(closure)

    return repeated(step, problem.turns)


def race(problem: Callable[[], Problem], ours: Callable[[Problem], Step], num: int) -> Iterator[float]:
    torch.set_num_threads(1)
    yield from interleaved(ours(problem()), passes(problem(), num))


def sam(problem: Problem) -> Step:
    return family(problem, evenly.SAM)


def lsam(problem: Problem) -> Step:
    return family(problem, evenly.LSAM)


TWICE = "2 × (forward + backward) + 1 SGD step: time"


@benchmark("sam-tiny", claim=f"a SAM step of the MLP 4-100-100-1, batch 5, against {TWICE}", at_most=1.12, repeats=41)
def sam_on_the_tiny_mlp() -> Iterator[float]:
    yield from race(tiny, sam, 2)


@benchmark(
    "sam-mlp", claim=f"a SAM step of the MLP 3072-512-512-10, batch 128, against {TWICE}", at_most=1.08, repeats=25
)
def sam_on_the_mlp() -> Iterator[float]:
    yield from race(mlp, sam, 2)


@benchmark(
    "sam-mlp-floor",
    claim="a SAM step of the MLP 3072-512-512-10 against two passes, a step, one norm of the gradient and one sum of "
    "weights and gradient: time",
    at_most=1.03,
    repeats=25,
)
def sam_on_the_mlp_against_its_floor() -> Iterator[float]:
    torch.set_num_threads(1)
    yield from interleaved(sam(mlp()), passes_and_walks(mlp()))


@benchmark("sam-conv", claim=f"a SAM step of the 3-conv network, batch 100, against {TWICE}", at_most=1.02, repeats=61)
def sam_on_the_conv_network() -> Iterator[float]:
    yield from race(conv3, sam, 2)


@benchmark(
    "sam-tiny-peer", claim="a SAM step of the tiny MLP against pytorch_optimizer's: time", at_most=0.85, repeats=41
)
def sam_against_the_peer_on_the_tiny_mlp() -> Iterator[float]:
    torch.set_num_threads(1)
    yield from interleaved(sam(tiny()), peer(tiny()))


@benchmark(
    "sam-mlp-peer", claim="a SAM step of the larger MLP against pytorch_optimizer's: time", at_most=0.96, repeats=25
)
def sam_against_the_peer_on_the_mlp() -> Iterator[float]:
    torch.set_num_threads(1)
    yield from interleaved(sam(mlp()), peer(mlp()))


@benchmark(
    "sam-conv-peer", claim="a SAM step of the 3-conv network against pytorch_optimizer's: time", at_most=1.0, repeats=15
)
def sam_against_the_peer_on_the_conv_network() -> Iterator[float]:
    torch.set_num_threads(1)
    yield from interleaved(sam(conv3()), peer(conv3()))


@benchmark(
    "sam-lsam-mlp", claim="an LSAM step of the larger MLP against a plain SGD step: time", at_most=1.06, repeats=25
)
def lsam_on_the_mlp() -> Iterator[float]:
    yield from race(mlp, lsam, 1)


@benchmark(
    "sam-lsam-conv", claim="an LSAM step of the 3-conv network against a plain SGD step: time", at_most=1.06, repeats=15
)
def lsam_on_the_conv_network() -> Iterator[float]:
    yield from race(conv3, lsam, 1)


def ideal(problem: Problem, rule: Callable[..., evenly.SAM]) -> Step:
    """The passes of a rule and one SGD step: one, two, or LookSAM's two in every fifth step."""
    every, model, loss, turns = 5, problem.model, problem.loss, problem.turns
    optimizer, steps = torch.optim.SGD(model.parameters(), lr=1e-4), itertools.count()

    def step() -> None:
        looks = rule.rule_type is not LookSAM.rule_type or next(steps) % every == 0
        for _ in range(rule.passes if looks else 1):
            optimizer.zero_grad()
            loss().backward()
        optimizer.step()

    return repeated(step, turns)


def rules(problem: Callable[[], Problem], name: str) -> Callable[[], Iterator[float]]:
    def ratios() -> Iterator[float]:
        torch.set_num_threads(1)
        rule = getattr(evenly, name)
        yield from interleaved(family(problem(), rule), ideal(problem(), rule))

    return ratios


def against(ours: Callable[[Problem], Step], other: Callable[[Problem], Step], problem: Callable[[], Problem]) -> Any:
    def ratios() -> Iterator[float]:
        torch.set_num_threads(1)
        yield from interleaved(ours(problem()), other(problem()))

    return ratios


def in_bfloat16(step: Callable[[Problem], Step]) -> Callable[[Problem], Step]:
    """The same steps under autocast, which goes around all of them as scripts have it."""

    def wrapped(problem: Problem) -> Step:
        steps = step(problem)

        def under_autocast() -> None:
            with torch.autocast("cpu", torch.bfloat16):
                steps()

        return under_autocast

    return wrapped


def bfloat16_ratios(problem: Callable[[], Problem]) -> Callable[[], Iterator[float]]:
    multiply = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); torch.nn.functional.linear(a, a)"

    def ratios() -> Iterator[float]:
        if subprocess.run([sys.executable, "-c", multiply], stderr=subprocess.DEVNULL, check=False).returncode:
            raise Missing("bfloat16 ends the process on this machine; set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16.")
        yield from against(in_bfloat16(sam), in_bfloat16(BY_HAND["SAM"]), problem)()

    return ratios


PROBLEMS = (
    (tiny, "the tiny MLP", 1.12, 25),
    (mlp, "the larger MLP", 1.10, 15),
    (conv3, "the 3-conv network", 1.05, 15),
)
for _problem, _words, _most, _repeats in PROBLEMS:
    _where = _problem.__name__.removesuffix("3")
    benchmark(
        f"sam-{_where}-davda54",
        claim=f"a SAM step of {_words} against davda54's, whose published step is written again here: time",
        at_most=1.0,
        repeats=_repeats,
    )(against(sam, davda54, _problem))
    benchmark(
        f"sam-{_where}-autocast",
        claim=f"a SAM step of {_words} under bfloat16 autocast against the hand-written one under it: time",
        at_most=1.0,
        repeats=_repeats,
    )(bfloat16_ratios(_problem))
    # Every other rule, against its own passes and one step.
    for _name in (known.kind for known in RULES.values() if known.kind != "SAM"):
        benchmark(
            f"sam-rule-{_name.lower()}-{_where}",
            claim=f"{_name} on {_words} against its own passes and one SGD step: time",
            at_most=_most,
            repeats=_repeats,
        )(rules(_problem, _name))
        if _problem is not conv3:
            # And against the least that its formula asks for besides, written bare.
            benchmark(
                f"sam-hand-{_name.lower()}-{_where}",
                claim=f"{_name} on {_words} against a hand-written step without checks or options: time",
                at_most=1.12 if _problem is tiny else 1.05,
                repeats=_repeats,
            )(against(lambda problem, name=_name: family(problem, getattr(evenly, name)), BY_HAND[_name], _problem))
    for _name in ("ASAM", "GSAM", "WSAM", "FriendlySAM"):
        benchmark(
            f"sam-peer-{_name.lower()}-{_where}",
            claim=f"{_name} on {_words} against pytorch_optimizer's: time",
            at_most=1.0,
            repeats=_repeats,
        )(
            against(
                lambda problem, name=_name: family(problem, getattr(evenly, name)),
                lambda problem, name=_name: peer(problem, name),
                _problem,
            )
        )
