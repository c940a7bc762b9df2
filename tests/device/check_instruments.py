"""Curvature, instruments, stability, separation and ensembles on the pretended device: the CPU's numbers, no mixing."""

import logging
from collections.abc import Iterator

import pretended
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from evenly import curvature, device, memory, stability
from evenly.curvature.lanczos import lanczos
from evenly.data import Labelled, load
from evenly.diagnostics.measure import measure
from evenly.models import build
from evenly.resampling import separate
from evenly.resampling.label_noise import label_noise
from evenly.resampling.suspects import suspects
from evenly.rng import generator
from evenly.training.ensemble.ensemble import Ensemble

CUDA = "cuda:1"


@pytest.fixture
def without_float64() -> Iterator[None]:
    device._has_float64.cache_clear()
    with pretended.without_float64():
        yield
    device._has_float64.cache_clear()


def convolutional(where: str) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    rng = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 36, 3)).to(where)
    x, y = torch.randn(12, 1, 8, 8, generator=rng), torch.randint(3, (12,), generator=rng)
    return model, (x.to(where), y.to(where))


def sharpest(where: str) -> tuple[float, float]:
    model, data = convolutional(where)
    found = lanczos(curvature.hessian(model, data), k=1, tol=1e-5, rng=generator(0, "start"))
    return found.values[0].item(), found.residuals[0].item()


def test_the_largest_eigenvalue_is_the_cpus() -> None:
    assert sharpest(CUDA) == sharpest("cpu")


def test_tf32_is_off_wherever_an_error_is_stated() -> None:
    value, _ = sharpest("cpu")
    with pretended.with_tf32():
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            model, (x, _) = convolutional(CUDA)
            plain = model(x).detach().cpu()
            found, residual = sharpest(CUDA)
            kept = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False
    assert kept == (True, True)
    model, (x, _) = convolutional("cpu")
    assert not torch.equal(plain, model(x).detach())  # what is not measured may be in TF32
    assert abs(found - value) <= max(residual, 1e-6 * abs(value))


def test_gram_matrices_go_layer_by_layer_under_tf32_too(caplog: pytest.LogCaptureFixture) -> None:
    model, data = convolutional("cpu")
    expected = curvature.gram(model, data)
    model, data = convolutional(CUDA)
    with pretended.with_tf32(), caplog.at_level(logging.INFO):
        found = curvature.gram(model, data, memory=1 << 12)
    assert torch.allclose(found.cpu(), expected, rtol=1e-5)
    assert "example by example" not in caplog.text


def test_lanczos_goes_to_the_host_when_the_device_has_no_room(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected, _ = sharpest(CUDA)
    monkeypatch.setenv("EVENLY_MEMORY", "1e-6")
    found, _ = sharpest(CUDA)
    assert found == pytest.approx(expected, rel=1e-6)
    assert "on the host from here on" in caplog.text


def test_lanczos_without_room_anywhere_says_what_needs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free", lambda _: 100)
    with pytest.raises(Exception, match="give fewer max_products"):
        sharpest("cpu")


@pytest.mark.usefixtures("without_float64")
def test_curvature_needs_no_float64_on_the_device() -> None:
    assert sharpest(CUDA)[0] == pytest.approx(sharpest("cpu")[0], rel=1e-6)


def measured(where: str) -> dict[str, object]:
    splits = load("digit-dominoes")
    model = build("convnet", input_shape=splits.train.shape, num_classes=splits.num_classes, rng=generator(0, "init"))
    return measure(model.to(where).eval(), splits, rng=generator(0, "measure"), examples=40)


@pytest.fixture(scope="module")
def on_the_cpu() -> dict[str, object]:
    return measured("cpu")


def test_all_instruments_give_the_cpus_numbers(on_the_cpu: dict[str, object]) -> None:
    assert measured(CUDA) == on_the_cpu


@pytest.mark.usefixtures("without_float64")
def test_all_instruments_need_no_float64_on_the_device(on_the_cpu: dict[str, object]) -> None:
    found = measured(CUDA)
    numbers = {name: value for name, value in found.items() if isinstance(value, float)}
    assert numbers == pytest.approx({name: on_the_cpu[name] for name in numbers}, rel=1e-4)


def test_separation_of_outputs_on_the_device_is_the_cpus() -> None:
    rng = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(200, 3, generator=rng), torch.randint(3, (200,), generator=rng)
    here, there = (separate(logits.to(where), labels.to(where), rng=generator(0, "k")) for where in ("cpu", CUDA))
    assert torch.equal(here.hard, there.hard.cpu())


def drawn_outputs() -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    labels = torch.randint(3, (400,), generator=rng)
    near = functional.one_hot(labels, 3) * (4.0 * torch.rand(400, 1, generator=rng))
    return near + torch.randn(400, 3, generator=rng), labels


@pytest.mark.usefixtures("without_float64")
def test_separation_needs_no_float64_on_the_device() -> None:
    logits, labels = drawn_outputs()
    for on in ("logits", "probabilities"):
        here, there = (separate(logits.to(where), labels, on=on, rng=generator(0, "k")) for where in ("cpu", CUDA))
        assert torch.equal(here.hard, there.hard)
        assert here.splits[0].silhouette == there.splits[0].silhouette
    here, there = (separate(logits.to(where), labels, method="quantile") for where in ("cpu", CUDA))
    assert torch.equal(here.hard, there.hard)
    assert torch.equal(suspects(logits, labels).ranking, suspects(logits.to(CUDA), labels).ranking)
    assert label_noise(logits, labels) == label_noise(logits.to(CUDA), labels)


def test_separation_goes_to_the_host_when_the_device_has_no_room(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    logits, labels = drawn_outputs()
    expected = separate(logits, labels, rng=generator(0, "k"))
    monkeypatch.setenv("EVENLY_MEMORY", "1e-6")
    found = separate(logits.to(CUDA), labels, rng=generator(0, "k"))
    assert torch.equal(found.hard, expected.hard)
    assert "separated on the host" in caplog.text


def test_stability_of_a_network_on_the_device_does_not_mix_devices() -> None:
    rng = torch.Generator().manual_seed(0)
    data = Labelled(torch.randn(6, 4, generator=rng), torch.randint(2, (6,), generator=rng), ("a", "b"))
    found = []
    for where in ("cpu", CUDA):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)).to(where)
        problem = stability.network_problem(model, data, loss="logistic")
        spread = stability.simulate(problem, lr=0.5, batch=2, steps=20, repeats=4, rng=generator(0, "simulate"))
        exponents = stability.lyapunov_spectrum(problem, lr=0.5, batch=2, steps=20, rng=generator(0, "lyapunov"))
        found.append((spread, exponents))
    assert str(found[0]) == str(found[1])


@pytest.mark.parametrize(("rule", "rho"), [("sgd", 0.0), ("sam", 0.1), ("asam", 0.5)])
def test_an_ensemble_on_the_device_trains_as_on_the_cpu_to_rounding(rule: str, rho: float) -> None:
    data, found = load("spirals", seed=0).train, []
    for where in ("cpu", CUDA):
        models = [build("disentangled", input_shape=(4,), num_classes=2, rng=seed).to(where) for seed in (0, 1)]
        ensemble = Ensemble(models, data, lr=0.01, rule=rule, rho=rho, batch_size=5, seeds=[0, 1])
        ensemble.run(10)
        found.append(ensemble.outputs(data.inputs.to(where)).cpu())
    assert torch.allclose(*found, rtol=1e-5, atol=1e-6), (found[0] - found[1]).abs().max()
