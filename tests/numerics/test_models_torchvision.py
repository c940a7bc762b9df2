"""ResNet, VGG and DenseNet against torchvision: the same names, first weights, outputs and gradients."""

import runpy
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from evenly.models import build, load_weights
from evenly.models.vgg import VGG19
from evenly.models.weights import _rename

PEERS = {"resnet18": "resnet18", "resnet50": "resnet50", "densenet121": "densenet121", "vgg19-bn": "vgg19_bn"}
pairs = pytest.mark.parametrize("name", PEERS)


@pytest.fixture(scope="module")
def theirs() -> ModuleType:
    module = runpy.run_path(str(Path(__file__).parent / "torchvision_guard.py"))["torchvision"]()
    if module is None:
        pytest.skip("torchvision is not installed")
    return module.models


def peer(theirs: ModuleType, name: str, seed: int = 11) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        made: nn.Module = getattr(theirs, PEERS[name])(num_classes=10)
    return made


def ours(name: str, rng: int = 11, **options: Any) -> nn.Module:
    return build(name, input_shape=(3, 64, 64), num_classes=10, rng=rng, **options)


def images(num: int = 2) -> Tensor:
    return torch.randn(num, 3, 64, 64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "densenet121"])
def test_names_and_shapes_are_torchvisions(theirs: ModuleType, name: str) -> None:
    with torch.device("meta"):
        expected = getattr(theirs, PEERS[name])(num_classes=10).state_dict()
    found = ours(name).state_dict()
    assert {key: value.shape for key, value in found.items()} == {key: value.shape for key, value in expected.items()}


@pairs
def test_first_weights_outputs_and_gradients_are_torchvisions(theirs: ModuleType, name: str) -> None:
    expected, found = peer(theirs, name), ours(name)
    # Built in the same order from the same seed: equal to the last bit, parameter by parameter.
    for (_, a), (_, b) in zip(expected.named_parameters(), found.named_parameters(), strict=True):
        assert torch.equal(a, b)
    for model in (expected, found):
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
    x = images()
    for training in (True, False):  # the train pass also fills the running statistics, which the eval pass reads
        expected.train(training), found.train(training)
        torch.testing.assert_close(found(x), expected(x), rtol=1e-4, atol=1e-5)
    if name != "vgg19-bn":  # its 140 million gradients twice are memory for nothing: the layers are the same kinds
        expected(x).square().sum().backward(), found(x).square().sum().backward()
        for a, b in zip(expected.parameters(), found.parameters(), strict=True):
            torch.testing.assert_close(b.grad, a.grad, rtol=1e-3, atol=1e-4 * float(a.grad.abs().max()))


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_a_torchvision_file_loads_and_only_another_head_is_left_out(
    theirs: ModuleType, suffix: str, tmp_path: Path
) -> None:
    from safetensors.torch import save_file

    expected = peer(theirs, "resnet18").eval()
    path = tmp_path / f"resnet18{suffix}"
    save_file(expected.state_dict(), path) if suffix == ".safetensors" else torch.save(expected.state_dict(), path)
    x = images()
    same = ours("resnet18", rng=1, weights=path).eval()
    torch.testing.assert_close(same(x), expected(x))
    tuned = build("resnet18", input_shape=(3, 64, 64), num_classes=2, rng=1, weights=path).eval()
    fresh = build("resnet18", input_shape=(3, 64, 64), num_classes=2, rng=1)
    torch.testing.assert_close(tuned.features(x), same.features(x))
    assert torch.equal(tuned.head.weight, fresh.head.weight)
    assert torch.equal(tuned.head.bias, fresh.head.bias)


def test_densenets_older_published_names_load(theirs: ModuleType, tmp_path: Path) -> None:
    expected = peer(theirs, "densenet121").eval()
    older = {}
    for key, value in expected.state_dict().items():
        for kind in ("norm1", "norm2", "conv1", "conv2"):
            key = key.replace(f".{kind}.", f".{kind[:-1]}.{kind[-1]}.") if "denselayer" in key else key
        if "num_batches" not in key:
            older[key] = value
    assert "features.denseblock1.denselayer1.norm.1.weight" in older
    torch.save(older, tmp_path / "densenet121.pth")
    model = ours("densenet121", rng=1, weights=tmp_path / "densenet121.pth").eval()
    torch.testing.assert_close(model(images()), expected(images()), rtol=1e-4, atol=1e-5)


def test_vggs_published_names_all_have_a_place(theirs: ModuleType) -> None:
    with torch.device("meta"):
        model, published = VGG19((3, 32, 32), 10), theirs.vgg19_bn(num_classes=10).state_dict()
    own = model.state_dict()
    named = _rename(published, model, own)
    assert {key: value.shape for key, value in named.items()} == {key: value.shape for key, value in own.items()}


def test_vggs_published_names_load(tmp_path: Path) -> None:
    # The light body, so that no file of 560 MB is written.
    model = VGG19((3, 32, 32), 10, classifier="light")
    published = {
        key.replace("convolutions.", "features.").replace("head.", "classifier.6."): value
        for key, value in model.state_dict().items()
    }
    torch.save(published, tmp_path / "vgg.pth")
    other = VGG19((3, 32, 32), 10, classifier="light")
    assert load_weights(other, tmp_path / "vgg.pth") == ()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_torchvision_by_name_is_its_own_model_with_weights_from_rng(theirs: ModuleType) -> None:
    model = build("torchvision:resnet18", input_shape=(3, 64, 64), num_classes=10, rng=11)
    assert type(model) is theirs.ResNet
    expected = peer(theirs, "resnet18")
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), expected.parameters(), strict=True))
