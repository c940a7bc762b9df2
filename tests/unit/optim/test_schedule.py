"""The schedule of the learning rate is that of torch's schedulers."""

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, MultiStepLR

from evenly.optim.schedule import multiplier
from evenly.recipe import Schedule


def rates_of_torch(make: object, epochs: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = make(optimizer)
    rates = []
    for _ in range(epochs):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def test_steps_fall_where_torchs_multi_step_schedule_lets_them_fall() -> None:
    ours = [multiplier(Schedule("step"), epoch=e, epochs=200) for e in range(200)]
    theirs = rates_of_torch(lambda o: MultiStepLR(o, [100, 150], gamma=0.1), 200)
    assert ours == pytest.approx(theirs)


def test_the_cosine_is_torchs() -> None:
    ours = [multiplier(Schedule("cosine"), epoch=e, epochs=20) for e in range(20)]
    assert ours == pytest.approx(rates_of_torch(lambda o: CosineAnnealingLR(o, 20), 20))


def test_warm_up_rises_linearly_and_the_cosine_begins_at_its_end() -> None:
    schedule = Schedule("cosine", warmup_epochs=5)
    assert [multiplier(schedule, epoch=e, epochs=20) for e in (0, 1, 2.5, 5, 20)] == pytest.approx(
        [0, 0.2, 0.5, 1.0, 0.0]
    )


def test_a_milestone_that_rounds_up_is_not_missed() -> None:
    schedule = Schedule("step", milestones=(0.07,))
    assert multiplier(schedule, epoch=7, epochs=100) == pytest.approx(0.1)
    assert multiplier(schedule, epoch=6.99, epochs=100) == 1.0
