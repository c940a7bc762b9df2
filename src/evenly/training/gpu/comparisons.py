"""The same computation on the CPU and on a device, component by component."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from evenly import curvature, models, optim
from evenly.data.augment import Augmentation
from evenly.device import upload
from evenly.resampling import separate
from evenly.rng import generator

Make = Callable[[torch.device], Tensor]
SHAPE, CLASSES, EXAMPLES = (3, 32, 32), 10, 16


def check(make: Make, tolerance: float) -> Callable[[torch.device], tuple[str, bool]]:
    """A check: how far `make` on the device is from `make` on the CPU, relative to its largest number."""

    def ask(device: torch.device) -> tuple[str, bool]:
        here, there = (make(where).detach().cpu() for where in (torch.device("cpu"), device))
        if here.shape != there.shape:
            return f"another shape: {(*there.shape,)}, not {(*here.shape,)}", False
        if not tolerance:
            same = torch.equal(here, there)
            return "the same bits" if same else "other bits", same
        off = float((here.double() - there.double()).abs().max() / here.double().abs().max().clamp_min(1e-30))
        return f"{off:.1e} (allowed: {tolerance:.0e})", off <= tolerance

    return ask


def _batch(device: torch.device) -> tuple[Tensor, Tensor]:
    rng = generator(0, "gpu", "batch")
    x, y = torch.rand(EXAMPLES, *SHAPE, generator=rng), torch.randint(CLASSES, (EXAMPLES,), generator=rng)
    return x.to(device), y.to(device)


def _model(name: str, device: torch.device) -> nn.Module:
    # Dropout draws different numbers on different devices.
    options: dict[str, Any] = {"dropout": 0.0} if name == "mlp" else {}
    rng = generator(0, "gpu", name)
    return models.build(name, input_shape=SHAPE, num_classes=CLASSES, rng=rng, **options).to(device)


def _gradient(name: str, rule: Any = None) -> Make:
    def make(device: torch.device) -> Tensor:
        model, (x, y) = _model(name, device), _batch(device)
        if rule is None:
            functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]  # torch's own
        else:
            rule(model, rho=0.05).backward(lambda: functional.cross_entropy(model(x), y))
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    return make


def _augment(*words: str) -> Make:
    def make(device: torch.device) -> Tensor:
        x, index = (_batch(device)[0] * 255).to(torch.uint8), torch.arange(EXAMPLES)
        return Augmentation.parse(words)(x, seed=0, epoch=1, index=index)

    return make


def _upload_many(device: torch.device) -> Tensor:
    """Many small tensors, none of them kept on the host: a late copy would read another tensor's numbers."""
    rng = generator(0, "gpu", "copies")
    return torch.cat([upload(torch.rand(7, generator=rng), device) for _ in range(300)])


def _sharpness(device: torch.device) -> Tensor:
    operator = curvature.hessian(_model("convnet", device).eval(), _batch(device))
    return curvature.lanczos(operator, k=2, tol=1e-4, rng=generator(0, "gpu", "lanczos")).values


def _gram(device: torch.device) -> Tensor:
    return curvature.gram(_model("convnet", device).eval(), _batch(device))


def _separate(device: torch.device) -> Tensor:
    rng = generator(0, "gpu", "separate")
    logits, labels = torch.randn(300, 3, generator=rng), torch.randint(3, (300,), generator=rng)
    return separate(logits.to(device), labels.to(device), rng=generator(0, "k")).hard.to(torch.uint8)


#: The comparisons: a description, the computation, and the tolerance (0: the same bits).
COMPONENTS: dict[str, tuple[str, Make, float]] = {
    "mlp": ("the gradient of an MLP", _gradient("mlp"), 1e-4),
    "resnet": ("the gradient of a ResNet-18", _gradient("resnet18"), 1e-3),
    "vit": ("the gradient of a vision transformer", _gradient("vit-s"), 1e-3),
    "sam": ("SAM's gradient", _gradient("convnet", optim.SAM), 1e-3),
    "asam": ("ASAM's gradient", _gradient("convnet", optim.ASAM), 1e-3),
    "gsam": ("GSAM's gradient", _gradient("convnet", optim.GSAM), 1e-3),
    "pad-crop, mirror": ("augmented images", _augment("pad-crop", "mirror"), 0.0),
    "resized-crop": ("images cropped and resized", _augment("resized-crop:24"), 0.0),
    "noise, erase": ("images with noise and erased parts", _augment("noise:0.1", "erase"), 0.0),
    "copies": ("numbers sent from the host", _upload_many, 0.0),
    "trivial": ("images after TrivialAugment", _augment("trivial"), 0.0),
    "sharpness": ("the two largest curvatures of a convolutional network", _sharpness, 1e-3),
    "gram": ("the Gram matrix of its gradients", _gram, 1e-3),
    "separate": ("a separation of outputs", _separate, 0.0),
}
