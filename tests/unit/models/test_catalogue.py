"""`build`: what it refuses, in which words, and before anything is made."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from evenly import rng
from evenly.errors import UsageError
from evenly.models import CATALOGUE, build


def make(name: str = "mlp", **changes: Any) -> torch.nn.Module:
    settings: dict[str, Any] = {"input_shape": (1, 8, 8), "num_classes": 10, "rng": 0, **changes}
    return build(name, **settings)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mpl", r"there is no model 'mpl'\. Did you mean 'mlp'\?"),
        ("preact_resnet18", r"Did you mean 'preact-resnet18'"),
        ("ResNet18", r"Did you mean 'resnet18'"),
        ("zzz", r"Known: .*convnet, cubic, .*module:function"),
    ],
)
def test_an_unknown_model_is_answered_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        make(name)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"widht": 3}, r"mlp has no option 'widht'\. Did you mean 'width'\?"),
        ({"width": "big"}, r"mlp: width: expected a whole number of at least 1, not 'big'\. For example: width=512"),
        ({"width": 0}, r"width: expected a whole number of at least 1, not 0"),
        ({"width": 1.5}, r"width: expected a whole number of at least 1, not 1\.5"),
        ({"width": True}, r"width: expected a whole number of at least 1, not true"),
        ({"width": None}, r"width: expected a whole number of at least 1, not null"),
        ({"dropout": 1}, r"dropout: expected a number of at least 0 and below 1, not 1"),
        ({"dropout": float("nan")}, r"dropout: expected a number of at least 0 and below 1, not nan"),
    ],
)
def test_an_option_is_refused_by_name_type_or_range(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make(**options)


COUNTS = [
    (name, option)
    for name, entry in CATALOGUE.items()
    for option, parameter in entry.options().items()
    if type(parameter.default) is int
]


@pytest.mark.parametrize(("name", "option"), COUNTS)
def test_every_count_among_the_options_of_a_model_is_at_least_one(name: str, option: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: {option}: expected a whole number of at least 1.*, not -3"):
        make(name, **{option: -3})


def test_options_arrive_as_yaml_writes_them() -> None:
    assert make(width=64.0).head.in_features == 64
    assert make("vgg19-bn", input_shape=(3, 32, 32), classifier="light").head.in_features == 512
    with pytest.raises(UsageError, match=r"classifier: expected one of official, light, not 'lihgt'\. Did you mean"):
        make("vgg19-bn", input_shape=(3, 32, 32), classifier="lihgt")


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("vit-s", (3, 30, 30), r"patches of 4×4, which do not tile inputs of 3×30×30\. For example: patch=(3|5)"),
        ("vit-s", (3, 32, 30), r"inputs of 3×32×30\. For example: patch=2"),
        ("vgg19-bn", (3, 28, 28), r"at least 32 pixels on a side, but the inputs are 3×28×28"),
        ("densenet121", (1, 28, 28), r"at least 29 pixels on a side, but the inputs are 1×28×28"),
        ("convnet", (50,), r"convnet takes images of channels×height×width, but the inputs are 50\..*mlp"),
        ("resnet18", (32, 32), r"resnet18 takes images .* the inputs are 32×32"),
        ("preact-resnet34", (32, 32), r"preact-resnet34 takes images"),
        ("cubic", (150,), r"cubic takes patches×dimensions, such as the 3×50 .* the inputs are 150"),
        ("relu2", (3, 50), r"relu2 takes vectors, .* but the inputs are 3×50"),
        ("disentangled", (5,), r"two halves, but the inputs have 5 numbers"),
    ],
)
def test_a_shape_that_does_not_fit_is_named_beside_the_one_that_would(
    name: str, shape: tuple[int, ...], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        make(name, input_shape=shape, num_classes=2)


def test_the_smallest_images_a_deep_model_admits_do_run_and_smaller_ones_would_not() -> None:
    for name, side in (("vgg19-bn", 32), ("densenet121", 29)):
        options = {"classifier": "light"} if name == "vgg19-bn" else {}
        model = make(name, input_shape=(1, side, side), **options).eval()
        assert model(torch.zeros(1, 1, side, side)).shape == (1, 10)
        with pytest.raises(RuntimeError):
            model(torch.zeros(1, 1, side - 1, side - 1))


@pytest.mark.parametrize("name", ["relu2", "disentangled", "cubic"])
def test_a_single_logit_tells_only_two_classes_apart(name: str) -> None:
    shape = {"relu2": (15,), "disentangled": (4,), "cubic": (3, 50)}[name]
    options = {"single_logit": True} if name == "cubic" else {}
    with pytest.raises(UsageError, match="one logit and so tells 2 classes apart, but there are 3"):
        make(name, input_shape=shape, num_classes=3, **options)


def test_filters_of_cubic_share_out_evenly_over_classes() -> None:
    assert make("cubic", input_shape=(3, 50), num_classes=4).head.outputs == 4
    with pytest.raises(UsageError, match=r"num_filters = 40 cannot be divided evenly among 3 classes\. .*=39"):
        make("cubic", input_shape=(3, 50), num_classes=3)


@pytest.mark.parametrize("shape", [(), (0, 3), (3, -1), (1.5,), (True,), "3x32x32", 784, None])
def test_an_input_shape_that_is_none_is_refused(shape: Any) -> None:
    with pytest.raises(UsageError, match=r"input_shape: expected the shape of one input, such as \(3, 32, 32\)"):
        make(input_shape=shape)


@pytest.mark.parametrize("num_classes", [1, 0, -2, 2.0, True, "10", None])
def test_fewer_than_two_classes_are_refused(num_classes: Any) -> None:
    with pytest.raises(UsageError, match="num_classes: expected a whole number of at least 2"):
        make(num_classes=num_classes)


def test_whole_numbers_of_other_libraries_will_do() -> None:
    model = make(input_shape=torch.zeros(1, 8, 8).shape, num_classes=np.int64(3))
    assert model.head.out_features == 3


@pytest.mark.parametrize("key", [None, -1, 2**63, 1.0, True, "0"])
def test_a_key_that_is_none_is_refused(key: Any) -> None:
    with pytest.raises(UsageError, match=r"rng: expected a torch\.Generator or a whole number"):
        make(rng=key)


def test_a_generator_moves_by_one_draw_whatever_the_model() -> None:
    small, large = rng.generator(0, "init"), rng.generator(0, "init")
    make("mlp", rng=small)
    make("convnet", rng=large, input_shape=(3, 32, 32))
    assert torch.equal(small.get_state(), large.get_state())
    assert not torch.equal(small.get_state(), rng.generator(0, "init").get_state())


def test_the_global_generator_and_device_are_back_after_a_refusal() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    with pytest.raises(UsageError):
        make("vit-s", input_shape=(3, 30, 30))
    assert torch.equal(torch.get_rng_state(), before)


def test_first_weights_do_not_depend_on_the_default_device() -> None:
    with torch.device("meta"):
        inside = make()
    assert all(torch.equal(a, b) for a, b in zip(inside.parameters(), make().parameters(), strict=True))


def test_the_catalogue_names_options_with_their_defaults() -> None:
    assert {name: p.default for name, p in CATALOGUE["mlp"].options().items()} == {
        "width": 512,
        "depth": 3,
        "dropout": 0.1,
    }
    for entry in CATALOGUE.values():
        assert all(p.default is not p.empty for p in entry.options().values())


def test_the_catalogue_is_read_without_torch() -> None:
    code = "import sys, evenly.models.catalogue as c; c.CATALOGUE; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (
            "mlp",
            {"width": 1_000_000},
            r"mlp for 3×8×8 and 10 classes with width=1000000 has 4,001 GB of parameters, and \d+ GB are free",
        ),
        ("mlp", {"width": 10**12}, r"GB of parameters"),
        ("mlp", {"width": 2**64 - 1}, r"GB of parameters"),
        ("preact-resnet18", {"width": 100_000}, r"GB of parameters"),
        ("mlp", {"input_shape": (3, 10**7, 10**7), "width": 8}, r"GB of parameters"),
        ("mlp", {"width": 8, "depth": 10**9}, r"depth: expected a whole number of at least 1 and of at most 10,000"),
    ],
)
def test_a_network_that_no_memory_holds_is_refused_before_it_is_made(
    name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        make(name, **({"input_shape": (3, 8, 8)} | options))
