"""The examples of every class, listed a few classes at a time."""

import pytest
import torch

from evenly.resampling.outputs import PIECE, check_outputs


@pytest.mark.parametrize(("num", "num_classes"), [(10, 3), (3 * PIECE + 5, 40), (2 * PIECE, 2)])
def test_every_example_comes_once_in_its_class_and_in_rising_order(num: int, num_classes: int) -> None:
    labels = torch.randint(num_classes, (num,), generator=torch.Generator().manual_seed(0))
    outputs = check_outputs(torch.zeros(1, 1).expand(num, num_classes), labels)
    listed = list(outputs.by_class())
    assert [label for label, _ in listed] == labels.unique().tolist()
    assert torch.equal(torch.cat([members for _, members in listed]), labels.argsort(stable=True))


def test_a_class_without_examples_is_passed_over() -> None:
    outputs = check_outputs(torch.zeros(3, 5), torch.tensor([4, 0, 4]))
    assert [(label, members.tolist()) for label, members in outputs.by_class()] == [(0, [1]), (4, [0, 2])]
