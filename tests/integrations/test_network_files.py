"""Exported networks give the network's own outputs in programs that know nothing of evenly."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import evenly
from evenly.cli import main
from evenly.recipe import Data, Model, Recipe
from evenly.records import Run
from evenly.training.train import train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    runs = tmp_path_factory.mktemp("runs")
    recipe = Recipe(data=Data("digits"), model=Model("convnet"), augment=("normalise",), epochs=1)
    return train(recipe, runs=runs, device="cpu")


def images(num: int = 5) -> torch.Tensor:
    return torch.rand((num, 1, 8, 8), generator=torch.Generator().manual_seed(1))


def expected(run: Run) -> torch.Tensor:
    """By hand: the recorded mean and deviation, then the bare model with the run's weights."""
    trained = evenly.load_run(run.path)
    kept = json.loads((run.path / "model.json").read_text())["inputs"]["normalise"]
    with torch.no_grad():
        outputs: torch.Tensor = trained.model((images() - kept["mean"][0]) / kept["std"][0])
    return outputs


def test_torchscript_takes_plain_images_and_any_number_of_them(run: Run, tmp_path: Path) -> None:
    assert main(["export", str(run.path), "--as", "torchscript", "--out", str(tmp_path / "network.pt")]) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch advises torch.export
        network = torch.jit.load(str(tmp_path / "network.pt"))
    torch.testing.assert_close(network(images()), expected(run))


def test_onnx_gives_the_same_outputs_in_onnxruntime(run: Run, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    out = tmp_path / "network.onnx"
    assert main(["export", str(run.path), "--as", "onnx", "--out", str(out)]) == 0
    session = runtime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"images": images().numpy()})
    np.testing.assert_allclose(logits, expected(run).numpy(), atol=1e-4)


def test_without_onnx_the_line_to_install_it_is_given(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    assert main(["export", str(run.path), "--as", "onnx", "--out", str(tmp_path / "n.onnx")]) == 4
    assert 'pip install "evenly[onnx]"' in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_hub_folder_holds_weights_config_and_a_card_and_is_read_back(run: Run, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    out = tmp_path / "exported"
    assert main(["export", str(run.path), "--as", "hub", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    assert len({path.stat().st_mode for path in out.iterdir()}) == 1
    weights = load_file(run.path / "weights.safetensors")
    assert all(torch.equal(tensor, weights[name]) for name, tensor in load_file(out / "model.safetensors").items())
    config = json.loads((out / "config.json").read_text())
    assert config["id2label"]["3"] == "3"
    assert "path" not in config["evenly"]["data"]
    card = (out / "README.md").read_text()
    assert card.startswith("---\nlibrary_name:")
    assert all(f"## {part}" in card for part in ("Data", "Method", "Results", "Limits"))
    assert "10 classes apart: `0`, `1`, " in card
    assert f"| test | {run.summary()['test.error'] * 100:.2f} |" in card
    one, other = evenly.load_run(out), evenly.load_run(run.path)
    torch.testing.assert_close(one.predict(images()).probabilities, other.predict(images()).probabilities)


def test_the_card_is_one_that_the_hub_reads(run: Run, tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    from evenly.integrations.model_card import model_card

    card = hub.ModelCard(model_card(evenly.load_run(run.path)))
    assert card.data.library_name == "evenly"
    assert card.data.pipeline_tag == "image-classification"


def test_a_network_that_is_not_what_was_written_is_refused_and_nothing_stays(run: Run, tmp_path: Path) -> None:
    from evenly.errors import SetupError
    from evenly.integrations.network_files import write_torchscript

    class Fickle(torch.nn.Module):
        """Decides by the input, which a trace cannot hold."""

        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x.flatten(1)[:, :10] + self.calls

    trained = evenly.load_run(run.path)
    object.__setattr__(trained, "model", Fickle())
    with pytest.raises(SetupError, match="gives other outputs than the network"):
        write_torchscript(trained, tmp_path / "network.pt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["torchscript", "onnx", "hub"])
def test_nothing_but_an_earlier_export_is_replaced(
    form: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "models"
    own.mkdir()
    (own / "thesis.txt").write_text("years of work")
    assert main(["export", str(run.path), "--as", form, "--out", str(own), "--force"]) == 2
    told = capsys.readouterr().err
    assert "'thesis.txt', which evenly did not export" in told or "is a folder, and --as" in told
    assert (own / "thesis.txt").read_text() == "years of work"


def test_a_hub_folder_is_replaced_by_another_export_and_not_over_a_file(run: Run, tmp_path: Path) -> None:
    words = ["export", str(run.path), "--as", "hub", "--out", str(tmp_path / "hub")]
    assert main(words) == 0
    assert main([*words, "--force"]) == 0
    (tmp_path / "file").write_text("mine")
    assert main([*words[:-1], str(tmp_path / "file"), "--force"]) == 2
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("out", [".", "..", "/"])
def test_a_name_that_is_no_name_is_one_sentence(
    out: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for form in ("torchscript", "hub"):
        assert main(["export", str(run.path), "--as", form, "--out", out, "--force"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert all(line.startswith(f"evenly: {out}") for line in told)
