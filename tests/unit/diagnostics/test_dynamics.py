"""Training dynamics against plain loops over the history of every example."""

import itertools

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from evenly.diagnostics import Dynamics
from evenly.errors import DataError, UsageError


def history(epochs: int = 12, num: int = 9, classes: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(epochs, num, classes, generator=rng), torch.randint(classes, (num,), generator=rng)


def logged(logits: Tensor, labels: Tensor, *, batch: int = 4) -> dict[str, Tensor]:
    log = Dynamics()
    for epoch, outputs in enumerate(logits):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(epoch))
        for part in order.split(batch):
            log.update(outputs[part], labels[part], part)
    return log.table()


def test_every_column_equals_a_loop_over_the_history() -> None:
    logits, labels = history()
    table = logged(logits, labels)
    assert table["index"].tolist() == list(range(9))
    for i in range(9):
        y, z = int(labels[i]), logits[:, i].double()
        p = z.softmax(1)
        right = [bool(row.argmax() == y) for row in z]
        events = sum(a and not b for a, b in itertools.pairwise(right))
        one_hot = torch.nn.functional.one_hot(labels[i], 3)
        margins = [float(row[y] - max(float(v) for c, v in enumerate(row) if c != y)) for row in z]
        assert int(table["forgotten"][i]) == events
        assert int(table["right"][i]) == sum(right)
        assert int(table["first_learned"][i]) == (right.index(True) + 1 if any(right) else 0)
        assert bool(table["never_learned"][i]) == (not any(right))
        assert float(table["area_under_margin"][i]) == pytest.approx(sum(margins) / 12)
        assert float(table["el2n"][i]) == pytest.approx(float((p - one_hot).norm(dim=1).mean()))
        assert float(table["confidence"][i]) == pytest.approx(float(p[:, y].mean()))
        assert float(table["variability"][i]) == pytest.approx(float(p[:, y].std(correction=0)))


def test_copies_in_one_batch_follow_each_other() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0], [0.0, 2.0]])  # right, wrong, right, wrong
    together, apart = Dynamics(), Dynamics()
    together.update(logits, torch.zeros(4, dtype=torch.int64), torch.zeros(4, dtype=torch.int64))
    for row in logits:
        apart.update(row[None], torch.tensor([0]), torch.tensor([0]))
    for name, column in together.table().items():
        torch.testing.assert_close(column, apart.table()[name])
    assert together.table()["forgotten"].tolist() == [2]
    assert together.table()["seen"].tolist() == [4]


def test_with_epochs_a_repeated_example_is_judged_as_often_as_a_single_one() -> None:
    log = Dynamics()
    right, wrong = [2.0, 0.0], [0.0, 2.0]
    for epoch in range(3):
        # Example 0 once, right; example 1 twice, first right, then wrong.
        log.update(
            torch.tensor([right, right, wrong]), torch.zeros(3, dtype=torch.int64), torch.tensor([0, 1, 1]), epoch=epoch
        )
    table = log.table()
    assert table["judged"].tolist() == [3, 3]
    assert table["seen"].tolist() == [3, 6]
    assert table["forgotten"].tolist() == [0, 0]
    assert table["area_under_margin"].tolist() == pytest.approx([2.0, 0.0])


def test_one_output_is_logged_as_two_classes() -> None:
    one, two = Dynamics(), Dynamics()
    z, labels, index = torch.tensor([1.5, -0.5, 3.0]), torch.tensor([1, 1, 0]), torch.arange(3)
    one.update(z, labels, index)
    two.update(torch.stack([torch.zeros(3), z], dim=1), labels, index)
    for name, column in one.table().items():
        torch.testing.assert_close(column, two.table()[name])


def test_a_log_goes_on_from_its_state() -> None:
    logits, labels = history()
    whole, first, second = Dynamics(), Dynamics(), Dynamics()
    for outputs in logits:
        whole.update(outputs, labels, torch.arange(9))
    for outputs in logits[:5]:
        first.update(outputs, labels, torch.arange(9))
    second.load_state_dict(first.state_dict())
    for outputs in logits[5:]:
        second.update(outputs, labels, torch.arange(9))
    for name, column in whole.table().items():
        assert torch.equal(column, second.table()[name]), name


def test_an_empty_log_and_an_empty_batch_give_empty_columns() -> None:
    log = Dynamics()
    log.update(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
    assert {len(column) for column in log.table().values()} == {0}


def test_only_indices_that_were_seen_have_a_row() -> None:
    log = Dynamics()
    log.update(torch.zeros(2, 3), torch.tensor([0, 1]), torch.tensor([70, 3]))
    assert log.table()["index"].tolist() == [3, 70]


class Counting(TorchFunctionMode):
    """Counts the calls of torch."""

    calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_the_cost_of_an_update_does_not_grow_with_the_number_of_examples() -> None:
    counts = []
    for num in (8, 512):
        logits, labels = history(epochs=1, num=num)
        with Counting() as counting:
            Dynamics().update(logits[0], labels, torch.arange(num))
        counts.append(counting.calls)
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((torch.zeros(2, 3), torch.tensor([0]), torch.arange(2)), DataError, "2 logits, 1 labels"),
        ((torch.zeros(2, 3), torch.tensor([0, 3]), torch.arange(2)), DataError, "label 3 does not fit 3 logits"),
        ((torch.zeros(2, 3), torch.zeros(2), torch.arange(2)), UsageError, "labels must be whole numbers"),
        ((torch.zeros(1, 3), torch.tensor([0]), torch.tensor([-1])), UsageError, "indices run from 0"),
        ((torch.zeros(1, 3), torch.tensor([0]), torch.tensor([2**40])), UsageError, "position in the data set"),
        (
            (torch.tensor([[0.0, torch.nan]]), torch.tensor([0]), torch.tensor([7])),
            DataError,
            "example 7 are not finite",
        ),
    ],
)
def test_what_cannot_be_logged_is_refused(arguments, error: type[Exception], said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=said):
        Dynamics().update(*arguments)


def test_a_foreign_state_is_refused() -> None:
    with pytest.raises(DataError, match="not the state of a Dynamics log"):
        Dynamics().load_state_dict({"weight": torch.zeros(1)})


def test_forgetting_at_the_end_of_epochs_and_at_presentation_are_counted_apart() -> None:
    """Nguyen et al. compare evaluations after each epoch, Toneva et al. one presentation with the one before."""
    log = Dynamics()
    shown = [[1, 1, 0], [1, 0, 1], [1, 1, 1]]  # right when it was trained on, by epoch and example
    after = [[1, 0, 1], [0, 0, 1], [1, 1, 0]]  # right at the end of the epoch
    index, labels = torch.arange(3), torch.zeros(3, dtype=torch.int64)
    for epoch, (first, second) in enumerate(zip(shown, after, strict=True)):
        for right, call in ((first, lambda *a, e=epoch: log.update(*a, epoch=e)), (second, log.evaluate)):
            sign = 2.0 * torch.tensor(right) - 1
            call(torch.stack([sign, -sign], 1), labels, index)
    table = log.table()
    assert table["forgotten_at_presentation"].tolist() == table["forgotten"].tolist() == [0, 1, 0]
    assert table["forgotten_at_epoch_end"].tolist() == [1, 0, 1]
    assert table["evaluated"].tolist() == [3, 3, 3]
    again = Dynamics()
    again.load_state_dict(log.state_dict())
    assert again.table()["forgotten_at_epoch_end"].tolist() == [1, 0, 1]
    old = {name: value for name, value in log.state_dict().items() if "epoch_end" not in name and name != "evaluated"}
    again.load_state_dict(old)  # a log of version 0.1
    assert again.table()["forgotten"].tolist() == [0, 1, 0]
    with pytest.raises(UsageError, match="every example once"):
        log.evaluate(torch.zeros(2, 2), torch.zeros(2, dtype=torch.int64), torch.tensor([1, 1]))


def test_labels_that_do_not_fit_are_named_themselves() -> None:
    with pytest.raises(DataError, match=r"label -1 does not fit 3 logits: classes are numbered from 0 to 2"):
        Dynamics().update(torch.zeros(2, 3), torch.tensor([2, -1]), torch.tensor([0, 1]))
