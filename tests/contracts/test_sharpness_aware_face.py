"""The optimizer face: what frameworks that pass closures rely on."""

import copy
import pickle
import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import evenly
from evenly.errors import UsageError
from evenly.optim import RandomPerturbation, SharpnessAware

RULES = {
    "sam": evenly.SAM,
    "asam": evenly.ASAM,
    "gsam": evenly.GSAM,
    "look": evenly.LookSAM,
    "friendly": evenly.FriendlySAM,
    "momentum": evenly.MSAM,
    "random": RandomPerturbation,
}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def problem() -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)), torch.randn(8, 4), torch.randint(3, (8,))


def closure_of(model: nn.Module, optimizer, x: Tensor, y: Tensor, set_to_none: bool = True):
    def closure() -> Tensor:
        optimizer.zero_grad(set_to_none)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return closure


@every_rule
@pytest.mark.parametrize("set_to_none", [True, False])
def test_steps_with_a_closure_equal_backward_and_step_bit_for_bit(rule, set_to_none: bool) -> None:
    model, x, y = problem()
    twin = copy.deepcopy(model)
    optimizer = SharpnessAware(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), rule(model))
    sam, sgd = rule(twin), torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
    for _ in range(6):
        loss = optimizer.step(closure_of(model, optimizer, x, y, set_to_none))
        sgd.zero_grad()
        expected = sam.backward(lambda: F.cross_entropy(twin(x), y))
        sgd.step()
        assert torch.equal(loss, expected)
    for p, q in zip(model.state_dict().values(), twin.state_dict().values(), strict=True):
        assert torch.equal(p, q)


def test_a_closure_that_only_returns_the_loss_is_differentiated_here() -> None:
    model, x, y = problem()
    twin = copy.deepcopy(model)
    a = SharpnessAware(torch.optim.SGD(model.parameters(), lr=0.1), evenly.SAM(model))
    b = SharpnessAware(torch.optim.SGD(twin.parameters(), lr=0.1), evenly.SAM(twin))
    for _ in range(3):
        a.step(lambda: F.cross_entropy(model(x), y))
        b.step(closure_of(twin, b, x, y))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), twin.parameters(), strict=True))


@every_rule
def test_resume_carries_momentum_and_rule(rule) -> None:
    model, x, y = problem()

    def build(m: nn.Module) -> SharpnessAware:
        return SharpnessAware(torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9), rule(m))

    straight = copy.deepcopy(model)
    a, b = build(model), build(straight)
    for i in range(6):
        if i == 3:
            state, weights = copy.deepcopy(a.state_dict()), copy.deepcopy(model.state_dict())
            model = problem()[0]
            model.load_state_dict(weights)
            a = build(model)
            a.load_state_dict(state)
        a.step(closure_of(model, a, x, y))
        b.step(closure_of(straight, b, x, y))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), straight.parameters(), strict=True))


def test_the_state_of_the_bare_optimizer_is_taken() -> None:
    model, x, y = problem()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    F.cross_entropy(model(x), y).backward()
    sgd.step()
    face = SharpnessAware(torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9), evenly.SAM(model))
    face.load_state_dict(sgd.state_dict())
    weight = model[0].weight
    assert torch.equal(face.state[weight]["momentum_buffer"], sgd.state[weight]["momentum_buffer"])
    assert face.param_groups[0]["lr"] == 0.1


def test_schedulers_move_the_shared_groups_and_do_not_warn() -> None:
    model, x, y = problem()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = SharpnessAware(sgd, evenly.SAM(model))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outer = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        inner = torch.optim.lr_scheduler.StepLR(sgd, 1, 0.5)
        for _ in range(2):
            optimizer.step(closure_of(model, optimizer, x, y))
            outer.step()
            inner.step()
    assert optimizer.param_groups is sgd.param_groups
    assert sgd.param_groups[0]["lr"] == pytest.approx(0.1 * 0.5**4)
    assert isinstance(optimizer, torch.optim.Optimizer)


def test_deepcopy_and_pickle_go_their_own_way_even_under_a_scheduler() -> None:
    model, x, y = problem()
    optimizer = SharpnessAware(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), evenly.SAM(model))
    torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    optimizer.step(closure_of(model, optimizer, x, y))
    before = [p.detach().clone() for p in model.parameters()]
    for twin_model, twin in (
        copy.deepcopy((model, optimizer)),
        pickle.loads(pickle.dumps((model, optimizer))),
    ):
        twin.step(closure_of(twin_model, twin, x, y))
        assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))
        assert not torch.equal(next(twin_model.parameters()), before[0])


def test_hooks_on_the_face_fire_once_a_step() -> None:
    model, x, y = problem()
    optimizer = SharpnessAware(torch.optim.SGD(model.parameters(), lr=0.1), evenly.SAM(model))
    fired = []
    optimizer.register_step_post_hook(lambda *_: fired.append(1))
    optimizer.step(closure_of(model, optimizer, x, y))
    assert fired == [1]


def test_accumulation_is_refused_with_the_way_out() -> None:
    model, x, y = problem()
    optimizer = SharpnessAware(torch.optim.SGD(model.parameters(), lr=0.1), evenly.SAM(model))

    def adds() -> Tensor:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    adds()
    with pytest.raises(UsageError, match=r"sam\.backward per micro-batch"):
        optimizer.step(adds)


@pytest.mark.parametrize("stepped", [False, True])
@pytest.mark.parametrize("emptied", [False, True])
def test_gradients_that_the_closure_would_throw_away_are_refused(stepped: bool, emptied: bool) -> None:
    model, x, y = problem()
    optimizer = SharpnessAware(torch.optim.SGD(model.parameters(), lr=0.1), evenly.SAM(model))
    closure = closure_of(model, optimizer, x, y)
    if stepped:
        optimizer.step(closure)
    if emptied:
        optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    with pytest.raises(UsageError, match=r"throw them away: use sam\.backward per micro-batch"):
        optimizer.step(closure)
    optimizer.zero_grad()
    optimizer.step(closure)


@pytest.mark.parametrize("set_to_none", [False, True])
def test_gradients_that_were_emptied_or_left_by_a_step_are_no_accumulation(set_to_none: bool) -> None:
    model, x, y = problem()
    optimizer = SharpnessAware(torch.optim.SGD(model.parameters(), lr=0.1), evenly.SAM(model))
    F.cross_entropy(model(x), y).backward()
    for outside in (True, False, True):
        if outside:
            model.zero_grad(set_to_none)
        optimizer.step(closure_of(model, optimizer, x, y, set_to_none))


@pytest.mark.parametrize("options", [{"m": 4}, {"fraction": 0.5}, {"scaler": torch.amp.GradScaler("cpu")}])
def test_options_that_a_closure_cannot_serve_are_refused(options: dict) -> None:
    model, *_ = problem()
    with pytest.raises(UsageError, match=r"sam\.backward"):
        SharpnessAware(torch.optim.SGD(model.parameters(), lr=0.1), evenly.SAM(model, **options))


def test_step_without_a_closure_says_what_to_do() -> None:
    model, *_ = problem()
    optimizer = SharpnessAware(torch.optim.SGD(model.parameters(), lr=0.1), evenly.SAM(model))
    with pytest.raises(UsageError, match=r"optimizer\.step\(closure\)"):
        optimizer.step()
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.randn(2, 4)).sum()).backward()
    with pytest.raises(UsageError, match="GradScaler"):
        scaler.step(optimizer)


def test_a_rule_for_other_parameters_is_refused() -> None:
    with pytest.raises(UsageError, match="same model"):
        SharpnessAware(torch.optim.SGD(problem()[0].parameters(), lr=0.1), evenly.SAM(problem()[0]))
    with pytest.raises(UsageError, match="SharpnessAware"):
        SharpnessAware(problem()[0], evenly.SAM(problem()[0]))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="SharpnessAware"):
        SharpnessAware(torch.optim.SGD(problem()[0].parameters(), lr=0.1), "sam")  # type: ignore[arg-type]
