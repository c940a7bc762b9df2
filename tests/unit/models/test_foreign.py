"""Models of others by name: the user's functions, and libraries that are missing, broken or there."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from evenly.errors import DataError, SetupError, UsageError
from evenly.models import build, build_with
from evenly.models.foreign import foreign

MODULE = """
import torch
from torch import nn

VALUE = 3

def flat(input_shape, num_classes, hidden=8):
    size = torch.Size(input_shape).numel()
    return nn.Sequential(nn.Flatten(), nn.Linear(size, hidden), nn.Linear(hidden, num_classes))

def classes_only(*, num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))

def everything(**settings):
    assert settings == {"input_shape": (1, 8, 8), "num_classes": 3, "colour": "red"}, settings
    return nn.Sequential(nn.Flatten(), nn.Linear(64, settings["num_classes"]))

def needs_more(num_classes, hidden):
    return nn.Linear(hidden, num_classes)

def no_model(num_classes):
    return "a model"

def misfit(num_classes):
    return nn.Linear(7, num_classes)

def draws_and_fails(num_classes):
    torch.rand(3)
    raise KeyError("mine")
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with modules of the user's that are forgotten afterwards."""
    (tmp_path / "users_networks.py").write_text(MODULE)
    (tmp_path / "users_broken.py").write_text("import a_package_that_is_not_there\n")
    (tmp_path / "users_wrong.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    for name in ("users_networks", "users_broken", "users_wrong"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def make(name: str, **options: Any) -> nn.Module:
    return build(name, input_shape=(1, 8, 8), num_classes=3, rng=0, **options)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("users_networks:flat", {}),
        ("users_networks:flat", {"hidden": 5}),
        ("users_networks:classes_only", {}),
        ("users_networks:everything", {"colour": "red"}),
    ],
)
def test_a_function_of_the_users_gets_what_it_asks_for(here: Path, name: str, options: dict[str, Any]) -> None:
    path = list(sys.path)
    before = torch.get_rng_state()
    first, again = make(name, **options), make(name, **options)
    assert first(torch.zeros(2, 1, 8, 8)).shape == (2, 3)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert torch.equal(torch.get_rng_state(), before)
    assert sys.path == path


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("users_networks:falt", {}, r"the module users_networks has nothing called 'falt'\. Did you mean 'flat'"),
        ("users_networks:VALUE", {}, r"has no function but a value called 'VALUE'"),
        ("users_networks:flat", {"hiden": 3}, r"has no option 'hiden'\. Did you mean 'hidden'"),
        ("users_networks:needs_more", {}, r"asks for 'hidden', which was not given.*such as hidden=…"),
        ("users_networks:no_model", {}, r"returned a str, not a torch\.nn\.Module"),
        ("users_networks:misfit", {}, r"users_networks:misfit cannot take inputs of 1×8×8: mat1 and mat2"),
        ("users_network:flat", {}, r"there is no module 'users_network' in .* or among the installed packages"),
        ("users_networks.deep:flat", {}, r"users_networks"),
        ("users_broken:flat", {}, r"users_broken was found, but it imports 'a_package_that_is_not_there'"),
        ("users_wrong:flat", {}, r"importing it failed: ZeroDivisionError: division by zero"),
        ("json:dumps", {}, r"json:dumps failed .*TypeError: .*returns a torch\.nn\.Module"),
        ("builtins:dict", {}, r"builtins:dict returned a dict, not a torch\.nn\.Module"),
        ("users_networks:", {}, r"expected timm:NAME, torchvision:NAME or module:function"),
        (":flat", {}, r"expected timm:NAME, torchvision:NAME or module:function"),
    ],
)
def test_what_is_wrong_with_a_function_of_the_users_is_said(
    here: Path, name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        make(name, **options)


def test_an_error_inside_the_users_function_is_told_with_its_name_and_is_the_cause(here: Path) -> None:
    before = torch.get_rng_state()
    with pytest.raises(UsageError, match=r"networks:draws_and_fails failed .*num_classes=3: KeyError: 'mine'") as e:
        make("users_networks:draws_and_fails")
    assert isinstance(e.value.__cause__, KeyError)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """`without("timm")`: an installation in which the library's import runs `body`, or finds nothing at all."""

    def arrange(library: str, body: str | None = None) -> None:
        for name in [key for key in sys.modules if key.partition(".")[0] == library]:
            monkeypatch.delitem(sys.modules, name)
        if body is None:
            monkeypatch.setitem(sys.modules, library, None)  # Python's own way to say: there is no such module
            return
        (tmp_path / library).mkdir()
        (tmp_path / library / "part.py").write_text("")
        (tmp_path / library / "__init__.py").write_text(body)
        monkeypatch.syspath_prepend(str(tmp_path))

    return arrange


@pytest.mark.parametrize(("library", "extra"), [("timm", "timm"), ("torchvision", "vision")])
def test_a_library_that_is_not_installed_is_named_with_the_extra_that_brings_it(
    without: Any, library: str, extra: str
) -> None:
    without(library)
    with pytest.raises(SetupError, match=rf'{library}, which is not installed.*pip install "evenly\[{extra}\]"'):
        make(f"{library}:resnet18")


@pytest.mark.parametrize("library", ["timm", "torchvision"])
def test_a_library_that_is_installed_but_broken_is_said_to_be_so_every_time(without: Any, library: str) -> None:
    body = f"import {library}.part\nraise RuntimeError('operator torchvision::nms does not exist')"
    without(library, body)
    for _ in range(2):
        with pytest.raises(SetupError, match=r"is installed but cannot be imported: operator torchvision::nms"):
            make(f"{library}:resnet18")
        assert f"{library}.part" not in sys.modules


def test_what_a_library_lacks_itself_is_named(without: Any) -> None:
    without("timm", "import a_package_that_is_not_there")
    with pytest.raises(SetupError, match=r"timm, which is installed but imports 'a_package_that_is_not_there'"):
        make("timm:resnet18")


@pytest.fixture(scope="module")
def torchvision() -> Any:
    guard = Path(__file__).parents[2] / "numerics" / "torchvision_guard.py"
    module = runpy.run_path(str(guard))["torchvision"]()
    if module is None:
        pytest.skip("torchvision is not installed")
    return module


@pytest.mark.usefixtures("torchvision")
@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("torchvision:resnet81", {}, r"torchvision has no classification model 'resnet81'\. Did you mean 'resnet18'"),
        ("torchvision:resnet18", {"depht": 3}, r"could not be made with these options: .*depht"),
        ("torchvision:resnet18", {}, r"torchvision:resnet18 cannot take inputs of 1×8×8: .*3 channels"),
    ],
)
def test_what_torchvision_refuses_is_said(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make(name, **options)


@pytest.mark.usefixtures("torchvision")
def test_timm_by_name_is_its_own_model_for_our_channels_and_classes() -> None:
    timm = pytest.importorskip("timm", reason="timm is not installed")
    model = make("timm:resnet10t")
    assert type(model) is timm.models.ResNet
    assert model(torch.zeros(2, 1, 32, 32)).shape == (2, 3)
    with pytest.raises(UsageError, match=r"timm has no model 'resnet10x'\. Did you mean"):
        make("timm:resnet10x")


@pytest.mark.usefixtures("torchvision")
def test_weights_of_timms_resnet_load_into_ours(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm", reason="timm is not installed")
    theirs = timm.create_model("resnet18", num_classes=10).eval()
    torch.save(theirs.state_dict(), tmp_path / "timm.pth")
    ours = build("resnet18", input_shape=(3, 32, 32), num_classes=10, rng=0, weights=tmp_path / "timm.pth").eval()
    x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("torchvision")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("timm:resnet10t", {"pretrained": True}),
        ("torchvision:resnet18", {"weights": "IMAGENET1K_V1"}),
    ],
)
def test_published_weights_that_cannot_be_fetched_are_an_error_in_words(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("timm", reason="timm is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")  # where nobody answers
    monkeypatch.setattr("urllib.request._opener", None)  # the opener of this process would remember the proxy
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(SetupError, match=r"the published weights of .* could not be fetched: .*random weights"):
        foreign(name, (3, 32, 32), 10, options)


@pytest.mark.usefixtures("torchvision")
def test_weights_that_torchvision_publishes_fill_all_but_a_head_of_other_classes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    models = sys.modules["torchvision.models"]
    published = models.get_model("resnet18", weights=None)
    chosen = models.ResNet18_Weights.DEFAULT
    # The file as it lies on a machine that has fetched it; its name ends in the digest of other weights.
    monkeypatch.setattr(type(chosen), "get_state_dict", lambda *_, **__: published.state_dict())
    recorded = {"weights": "DEFAULT"}
    filled = build_with(recorded, "torchvision:resnet18", input_shape=(3, 32, 32), num_classes=3, rng=0)
    torch.testing.assert_close(filled.conv1.weight, published.conv1.weight, rtol=0, atol=0)
    assert filled.fc.weight.shape == (3, 512)
    with pytest.raises(UsageError, match=r"torchvision has no weights 'IMAGENET1K_V7' of resnet18\. Did you mean"):
        foreign("torchvision:resnet18", (3, 32, 32), 3, {"weights": "IMAGENET1K_V7"})


@pytest.mark.usefixtures("torchvision")
def test_names_of_the_hub_and_files_that_are_not_there_are_answered_with_what_to_give() -> None:
    pytest.importorskip("timm", reason="timm is not installed")
    with pytest.raises(UsageError, match=r"--model timm:resnet18\.a1_in1k --set model\.options\.pretrained=true"):
        make("timm:hf-hub:timm/resnet18.a1_in1k")
    with pytest.raises(UsageError, match=r"no module 'hf' in .* Models of the Hugging Face Hub are .* timm:NAME"):
        make("hf:microsoft/resnet-18")
    with pytest.raises(DataError, match=r"there is no weights file /nowhere\.pth, which checkpoint_path names"):
        make("timm:resnet10t", checkpoint_path="/nowhere.pth")


def test_an_option_may_be_called_what_an_argument_of_build_is(here: Path) -> None:
    (here / "users_networks.py").write_text(
        "from torch import nn\n"
        "def named(num_classes, weights, name):\n"
        "    assert (weights, name) == ('mine', 'n')\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))\n"
    )
    options = {"weights": "mine", "name": "n"}
    model = build_with(options, "users_networks:named", input_shape=(1, 8, 8), num_classes=3, rng=0)
    assert model(torch.zeros(1, 1, 8, 8)).shape == (1, 3)
