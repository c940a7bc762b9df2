"""Instruments: eigenvalues against curvlinops and PyHessian, Gram against its formula and vmap, probes."""

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from benchmarks.harness import Missing, benchmark, interleaved
from evenly.curvature import gram, hessian, lanczos
from evenly.curvature.hessian import hessian_product
from evenly.diagnostics import fit_probe
from evenly.models.observation import flatten, unflatten

Batches = list[tuple[Tensor, Tensor]]
TOLERANCE = 1e-3


def convnet(*, trained: bool) -> tuple[nn.Module, Batches]:
    """A small CNN and 1,000 images of ten classes that it can learn, in batches of 250."""
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 2, 1),
        nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    with torch.no_grad():
        for p in model.parameters():
            fan_in = p[0].numel() if p.ndim > 1 else 1
            p.copy_(torch.randn(p.shape, generator=rng) * (2 / fan_in) ** 0.5 if p.ndim > 1 else torch.zeros_like(p))
    labels = torch.arange(1000) % 10
    means = F.interpolate(torch.randn(10, 3, 4, 4, generator=rng), 32)
    images = means[labels] + torch.randn(1000, 3, 32, 32, generator=rng)
    # A fifth of the labels are wrong: at a loss near 0 single precision itself is off by more than 1e-3.
    labels = torch.where(torch.rand(1000, generator=rng) < 0.2, labels.flip(0), labels)
    batches = list(zip(images.split(250), labels.split(250), strict=True))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for _ in range(6 if trained else 0):
        for x, y in batches:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    return model.eval(), batches


def reference(model: nn.Module, batches: Batches) -> Tensor:
    """The five largest eigenvalues in double precision, to far more digits than asked for."""
    exact = nn.Sequential(*model).double()
    found = lanczos(hessian(exact, batches), k=5, tol=1e-6, rng=torch.Generator().manual_seed(99)).values
    model.float()
    return found


def checked(find: Callable[[], Tensor], exact: Tensor, within: float) -> Callable[[], None]:
    """The same, but a miss ends the benchmark: speed at another accuracy is no comparison."""

    def run() -> None:
        values = find().sort(descending=True).values
        error = float(((values - exact) / exact).abs().max())
        assert error <= within, f"an eigenvalue is off by {error:.1e}"

    return run


def ours(model: nn.Module, batches: Batches) -> Callable[[], Tensor]:
    seeds = iter(range(10**6))  # another starting vector every time
    return lambda: (
        lanczos(hessian(model, batches), k=5, tol=TOLERANCE, rng=torch.Generator().manual_seed(next(seeds))).values
    )


def by_curvlinops(model: nn.Module, batches: Batches) -> Callable[[], Tensor]:
    try:
        from curvlinops import HessianLinearOperator
    except ImportError as missing:
        raise Missing('Install curvlinops: pip install -c constraints.txt -e ".[bench]".') from missing
    from scipy.sparse.linalg import LinearOperator, eigsh

    params = [p for p in model.parameters() if p.requires_grad]
    operator = HessianLinearOperator(
        model, nn.CrossEntropyLoss(), params, batches, check_deterministic=False, num_data=1000
    )
    size = sum(p.numel() for p in params)
    seeds = iter(range(10**6))

    def product(v: np.ndarray) -> np.ndarray:
        return (operator @ torch.from_numpy(v.reshape(-1).astype(np.float32))).numpy().astype(np.float64)

    matrix = LinearOperator((size, size), matvec=product, dtype=np.float64)
    return lambda: torch.from_numpy(
        eigsh(
            matrix, k=5, which="LA", tol=TOLERANCE, return_eigenvectors=False,
            v0=np.random.default_rng(next(seeds)).normal(size=size),
        )
    )  # fmt: skip


def by_pyhessian(model: nn.Module, batches: Batches) -> Callable[[], Tensor]:
    """PyHessian itself: power iteration with deflation, which stops at whatever accuracy it has."""
    try:
        from pyhessian import hessian as peer
    except ImportError as missing:
        raise Missing('Install PyHessian: pip install -c constraints.txt -e ".[bench]".') from missing

    def find() -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it leaves a graph of gradients behind, and torch says so
            operator = peer(model, nn.CrossEntropyLoss(), dataloader=batches, cuda=False)
            values, _ = operator.eigenvalues(maxIter=100, tol=TOLERANCE, top_n=5)
        model.zero_grad()
        return torch.tensor([float(value) for value in values], dtype=torch.float64)

    return find


def race(
    peer: Callable[[nn.Module, Batches], Callable[[], Tensor]], *, trained: bool, peer_within: float
) -> Iterator[float]:
    model, batches = convnet(trained=trained)
    exact = reference(model, batches)
    find = checked(ours(model, batches), exact, TOLERANCE)
    for _ in range(10):
        find()  # ten starting vectors without one miss, before anything is timed
    yield from interleaved(find, checked(peer(model, batches), exact, peer_within), warm_up=0)


CLAIM = "five largest Hessian eigenvalues to 1e-3, small CNN, 1,000 images"


@benchmark(
    "instruments-eigenvalues-untrained",
    claim=f"{CLAIM}, untrained, against curvlinops + eigsh: time",
    at_most=0.5,
    repeats=5,
)
def untrained_against_curvlinops() -> Iterator[float]:
    yield from race(by_curvlinops, trained=False, peer_within=TOLERANCE)


@benchmark(
    "instruments-eigenvalues-trained",
    claim=f"{CLAIM}, trained, against curvlinops + eigsh: time",
    at_most=0.5,
    repeats=5,
)
def trained_against_curvlinops() -> Iterator[float]:
    yield from race(by_curvlinops, trained=True, peer_within=TOLERANCE)


@benchmark(
    "instruments-eigenvalues-pyhessian",
    claim=f"{CLAIM}, trained, against PyHessian 0.1 itself, which stops at whatever accuracy it has: time",
    at_most=0.3,
    repeats=3,
)
def trained_against_pyhessian() -> Iterator[float]:
    yield from race(by_pyhessian, trained=True, peer_within=1.0)


@benchmark(
    "instruments-product",
    claim="one Hessian product of a small CNN with kept graphs, against the same with torch's own second derivative of "
    "convolutions: time",
    at_most=0.9,
)
def product_against_torchs_convolutions() -> Iterator[float]:
    model, batches = convnet(trained=False)
    params = list(model.parameters())
    operator = hessian(model, batches)
    v = torch.randn(operator.size, generator=torch.Generator().manual_seed(0))
    kept = [hessian_product(F.cross_entropy(model(x), y) / len(batches), params) for x, y in batches]

    def by_torch() -> Tensor:
        return torch.stack([flatten(product(unflatten(v, params))) for product in kept]).sum(0)

    torch.testing.assert_close(operator @ v, by_torch(), rtol=1e-3, atol=1e-4)
    yield from interleaved(lambda: operator @ v, by_torch)


@benchmark(
    "instruments-product-gradient",
    claim="one Hessian product of a small CNN with kept graphs, against one forward and backward: time",
    at_most=2,
)
def product_against_gradient() -> Iterator[float]:
    model, batches = convnet(trained=False)
    params = list(model.parameters())
    operator = hessian(model, batches)
    v = torch.randn(operator.size, generator=torch.Generator().manual_seed(0))

    def gradient() -> None:
        for x, y in batches:
            torch.autograd.grad(F.cross_entropy(model(x), y), params)

    yield from interleaved(lambda: operator @ v, gradient)


@benchmark(
    "instruments-gram-cnn-few",
    claim="Gram of 200 examples of a small CNN, where its verification costs most, against vmap(grad): time",
    at_most=1,
)
def convolutional_gram_of_few_against_vmap() -> Iterator[float]:
    model, batches = convnet(trained=False)
    model[7] = nn.Linear(512, 1)
    x = batches[0][0][:200]
    yield from interleaved(lambda: gram(model, x), lambda: by_vmap(model, x))


def by_vmap(model: nn.Module, x: Tensor) -> Tensor:
    params = {name: p.detach() for name, p in model.named_parameters()}
    one = grad(lambda params, x_: functional_call(model, params, (x_[None],)).squeeze())
    gradients = vmap(one, (None, 0))(params, x)
    rows = torch.cat([g.flatten(1) for g in gradients.values()], dim=1)
    return rows @ rows.T


def perceptron() -> tuple[nn.Module, Tensor]:
    torch.set_num_threads(1)
    x = torch.randn(1000, 100, generator=torch.Generator().manual_seed(0))
    return nn.Sequential(nn.Linear(100, 50), nn.ReLU(), nn.Linear(50, 1)), x


@benchmark(
    "instruments-gram",
    claim="Gram of 1,000 examples of a 100-50-1 network, by the general method, against its closed formula: time",
    at_most=1.2,
    repeats=25,
)
def gram_against_formula() -> Iterator[float]:
    model, x = perceptron()
    first, last = model[0], model[2]

    def formula() -> Tensor:
        with torch.no_grad():
            z = first(x)
            a, d = z.relu(), (z > 0) * last.weight
            return (x @ x.T + 1) * (d @ d.T) + (a @ a.T + 1)

    torch.testing.assert_close(gram(model, x), formula(), rtol=1e-3, atol=1e-3)
    yield from interleaved(lambda: gram(model, x), formula, warm_up=3)


@benchmark(
    "instruments-gram-vmap",
    claim="Gram of 1,000 examples of a 100-50-1 network, against vmap(grad) and a product: speed",
    at_least=10,
)
def gram_against_vmap() -> Iterator[float]:
    model, x = perceptron()
    yield from interleaved(lambda: gram(model, x), lambda: by_vmap(model, x))


@benchmark(
    "instruments-gram-cnn",
    claim="Gram of 500 examples of a small CNN, against vmap(grad) and a product: time",
    at_most=1,
)
def convolutional_gram_against_vmap() -> Iterator[float]:
    model, batches = convnet(trained=False)
    model[7] = nn.Linear(512, 1)
    x = torch.cat([batches[0][0], batches[1][0]])
    torch.testing.assert_close(gram(model, x), by_vmap(model, x), rtol=1e-3, atol=1e-2)
    yield from interleaved(lambda: gram(model, x), lambda: by_vmap(model, x))


PEAK = """
import torch
from torch import nn
from evenly.curvature import gram
def kilobytes(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))
model = nn.Sequential(nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 1))
x = torch.randn(3000, 1000)
gram(model, x[:10])
before = kilobytes("VmRSS")
K = gram(model, x)
print((kilobytes("VmHWM") - before) * 1024 / K.nbytes)
"""


@benchmark(
    "instruments-gram-memory",
    claim="memory added by the Gram of 3,000 examples of a 1000-1000-1 network (N × P is 12 GB), against the size of "
    "the Gram itself",
    at_most=4,
    repeats=3,
)
def memory_of_gram() -> Iterator[float]:
    if not Path("/proc/self/status").exists():
        raise Missing("Resident memory is read from /proc, which this system has not got.")
    while True:
        yield float(subprocess.run([sys.executable, "-c", PEAK], check=True, capture_output=True, text=True).stdout)


@benchmark(
    "instruments-probe",
    claim="a probe on 50,000 × 512 features (five strengths, one refit), against scikit-learn's own regression for the "
    "same strengths: time",
    at_most=2,
    repeats=3,
)
def probe_against_scikit_learn() -> Iterator[float]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(50_000) % 2
    x = torch.randn(50_000, 512, generator=rng) + 0.05 * (2.0 * y[:, None] - 1)
    strengths = (1.0, 0.1, 0.01, 0.001, 0.0001)

    def mine() -> None:
        fit_probe(
            x, y, test_features=x[:1000], test_targets=y[:1000], rng=torch.Generator().manual_seed(0), refits=1,
            strengths=strengths,
        )  # fmt: skip

    def theirs() -> None:
        rows = StandardScaler().fit_transform(x.numpy())
        for strength in strengths:
            model = LogisticRegression(C=1 / (strength * 37_500), max_iter=1000).fit(rows[:37_500], y[:37_500].numpy())
            model.score(rows[37_500:], y[37_500:].numpy())

    yield from interleaved(mine, theirs, warm_up=0)
