"""`load_weights`: strict but for a head of other classes; nothing is loaded by halves, nothing is run."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from evenly.errors import DataError, UsageError
from evenly.models import build, load_weights


def mlp(num_classes: int = 3, rng: int = 0, **options: Any) -> nn.Module:
    return build("mlp", input_shape=(4,), num_classes=num_classes, rng=rng, width=8, **options)


def states(model: nn.Module) -> dict[str, Tensor]:
    return {key: value.clone() for key, value in model.state_dict().items()}


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": state, "optimizer": {"lr": 0.1}},
        lambda state: {f"module.{key}": value for key, value in state.items()},
    ],
)
def test_a_state_dict_loads_also_out_of_a_checkpoint_or_under_ddps_names(wrapped: Any, tmp_path: Path) -> None:
    saved = mlp(rng=1)
    torch.save(wrapped(saved.state_dict()), tmp_path / "w.pth")
    model = mlp(rng=2)
    assert load_weights(model, tmp_path / "w.pth") == ()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), saved.parameters(), strict=True))


def test_a_safetensors_file_loads(tmp_path: Path) -> None:
    saved = mlp(rng=1)
    save_file(saved.state_dict(), tmp_path / "w.safetensors")
    model = mlp(rng=2, weights=tmp_path / "w.safetensors")
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), saved.parameters(), strict=True))


def test_a_head_of_other_classes_is_left_freshly_drawn_and_everything_else_is_loaded(tmp_path: Path) -> None:
    saved, fresh = mlp(1000, rng=1), mlp(3, rng=2)
    torch.save(saved.state_dict(), tmp_path / "w.pth")
    model = mlp(3, rng=2)
    assert load_weights(model, tmp_path / "w.pth") == ("head.weight", "head.bias")
    assert torch.equal(model.head.weight, fresh.head.weight)
    assert torch.equal(model.features[1].weight, saved.features[1].weight)


def test_a_last_layer_that_starts_anew_is_said_to(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    torch.save(mlp(1000, rng=1).state_dict(), tmp_path / "w.pth")
    with caplog.at_level("INFO", logger="evenly"):
        mlp(1000, rng=2, weights=tmp_path / "w.pth")
        assert not caplog.messages
        mlp(3, rng=2, weights=tmp_path / "w.pth")
    assert "the last layer of mlp (head.weight, head.bias) starts anew" in caplog.text


def test_a_model_of_others_keeps_its_last_linear_layer_when_classes_differ(tmp_path: Path) -> None:
    def make(num_classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, num_classes))

    torch.save(make(10).state_dict(), tmp_path / "w.pth")
    assert load_weights(make(3), tmp_path / "w.pth") == ("2.weight", "2.bias")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("features.1.bias"), r"Missing: features\.1\.bias\. Give"),
        (lambda s: s.pop("head.bias"), r"Missing: head\.bias\."),
        (lambda s: s.update(extra=torch.zeros(1)), r"Unexpected: extra\."),
        (
            lambda s: s.update({"features.1.weight": torch.zeros(8, 5)}),
            r"Of another shape: features\.1\.weight \(8×5 in the file, 8×4 in the model\)",
        ),
        (
            lambda s: s.update({"head.weight": torch.zeros(3, 9)}),
            r"Of another shape: head\.weight \(3×9 in the file, 3×8 in the model\)",
        ),
        (lambda s: [s.pop(key) for key in list(s)[1:]], r"Missing: features\.1\.bias, features\.4\.weight, "),
    ],
)
def test_anything_else_that_differs_is_listed_and_nothing_is_loaded(change: Any, words: str, tmp_path: Path) -> None:
    state = states(mlp(rng=1))
    change(state)
    torch.save(state, tmp_path / "w.pth")
    model = mlp(rng=2)
    before = states(model)
    with pytest.raises(UsageError, match=words):
        load_weights(model, tmp_path / "w.pth")
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_a_long_list_is_cut_and_counted(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1)}, tmp_path / "w.pth")
    with pytest.raises(UsageError, match=r"Missing: conv1\.weight, .* and \d+ more\. Unexpected: a\."):
        build("resnet18", input_shape=(3, 32, 32), num_classes=2, rng=0, weights=tmp_path / "w.pth")


def test_batch_norms_counter_may_be_missing_as_in_old_files(tmp_path: Path) -> None:
    saved = build("preact-resnet18", input_shape=(3, 8, 8), num_classes=2, rng=1, width=4)
    state = {key: value for key, value in saved.state_dict().items() if "num_batches" not in key}
    torch.save(state, tmp_path / "w.pth")
    model = build("preact-resnet18", input_shape=(3, 8, 8), num_classes=2, rng=2, width=4)
    assert load_weights(model, tmp_path / "w.pth") == ()
    assert torch.equal(model.stem.weight, saved.stem.weight)


class Malicious:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.trace),)


def test_a_pickle_that_would_run_code_is_refused_and_not_run(tmp_path: Path) -> None:
    torch.save({"features.1.weight": Malicious(tmp_path / "trace")}, tmp_path / "w.pth")
    with pytest.raises(DataError, match=r"holds more than tensors and was not opened, because that could run code"):
        load_weights(mlp(), tmp_path / "w.pth")
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("keep", [0, 10, 0.5])
def test_a_truncated_file_is_said_to_be_unreadable(suffix: str, keep: float, tmp_path: Path) -> None:
    path = tmp_path / f"w{suffix}"
    save_file(mlp().state_dict(), path) if suffix == ".safetensors" else torch.save(mlp().state_dict(), path)
    content = path.read_bytes()
    path.write_bytes(content[: keep if keep != 0.5 else len(content) // 2])
    with pytest.raises(DataError, match=r"w\.(pth|safetensors) (cannot be read as weights|is damaged)"):
        load_weights(mlp(), path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([1, 2], r"holds a list, not a state dict"),
        ({}, r"holds nothing, not a state dict"),
        ({"epoch": 3, "name": "x"}, r"holds epoch, name that are not tensors, not a state dict"),
    ],
)
def test_a_file_that_holds_something_else_is_said_to(content: Any, words: str, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "w.pth")
    with pytest.raises(DataError, match=words):
        load_weights(mlp(), tmp_path / "w.pth")


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.pth", tmp_path):
        with pytest.raises(DataError, match="there is no weights file"):
            load_weights(mlp(), path)
