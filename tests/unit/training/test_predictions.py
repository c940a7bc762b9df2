"""A run keeps what its network says of each example: the errors of its summary follow from it."""

from pathlib import Path

import numpy as np
import torch

from evenly.data import load
from evenly.models import build
from evenly.recipe import Data, Model, Recipe
from evenly.training.checkpoint import load_weights
from evenly.training.predictions import PREDICTIONS
from evenly.training.train import train


def test_the_predictions_of_a_run_give_its_errors_and_are_those_of_its_weights(tmp_path: Path) -> None:
    recipe = Recipe(data=Data("digits"), model=Model("mlp", {"width": 16}), epochs=2)
    run = train(recipe, runs=tmp_path)
    with np.load(run.file(PREDICTIONS)) as file:
        said = {name: file[name] for name in file}
    wrong = said["test.predicted"] != said["test.label"]
    assert abs(wrong.mean() - run.summary()["test.error"]) < 1e-12
    by_class = [wrong[said["test.label"] == label].mean() for label in range(10)]
    assert abs(max(by_class) - run.summary()["test.worst.class"]) < 1e-12
    data = load("digits")["test"]
    model = build("mlp", input_shape=data.shape, num_classes=10, rng=0, width=16)
    model.load_state_dict(load_weights(run, "weights.safetensors"))
    with torch.no_grad():
        outputs = model.eval()(data.gather(range(len(data))).float() / 255)
    np.testing.assert_array_equal(outputs.argmax(1).numpy(), said["test.predicted"])
    np.testing.assert_allclose(outputs.softmax(1).amax(1).numpy(), said["test.probability"], atol=2e-3)
    np.testing.assert_array_equal(said["test.index"], data.index.numpy())
