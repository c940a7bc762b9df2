"""Bad input is named, with what was expected and the line that fixes it."""

from typing import Any

import pytest
import torch
from torch import nn

import evenly
from evenly.errors import UsageError
from evenly.optim import NORMALISATION, RandomPerturbation
from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.rule import Rule


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rho": -0.1}, "rho=-0.1 is not a radius"),
        ({"rho": float("nan")}, "rho=nan is not a radius"),
        ({"rho": float("inf")}, "rho=inf is not a radius"),
        ({"where": "fc.*"}, r"where='fc.\*' selects no parameters"),
        ({"where": "0.weigth"}, "Did you mean '0.weight'"),
        ({"where": nn.BatchNorm1d}, "selects no parameters"),
        ({"where": NORMALISATION}, "selects no parameters"),
        ({"where": nn.Linear(2, 1)}, r"where=Linear selects no parameters of the model\. Parameters: 0\.weight, "),
        ({"where": [nn.Linear(2, 1)]}, "where=Linear selects no parameters"),
        ({"where": [nn.Linear(2, 1), nn.Linear(2, 1)]}, "selects no parameters"),
        ({"where": 3}, "where=3 is a int: pass a name pattern"),
        ({"every": 0}, "every=0 is not a number of steps"),
        ({"every": 1.5}, "every=1.5 is not a number of steps"),
        ({"every": float("nan")}, "every=nan is not a number of steps"),
        ({"every": "2"}, "every='2' is not a number of steps"),
        ({"fraction": "0.5"}, r"fraction='0.5' .* \(0, 1\]"),
        ({"m": 2.5}, "m=2.5 is not a number of examples"),
        ({"m": float("inf")}, "m=inf is not a number of examples"),
        ({"m": "some"}, "m='some' is not a number of examples"),
        ({"weight_decay": "x"}, "weight_decay='x'"),
        ({"fraction": 0.0}, r"fraction=0.0 .* \(0, 1\]"),
        ({"fraction": 1.5}, r"fraction=1.5 .* \(0, 1\]"),
        ({"m": 0}, "m=0 is not a number of examples"),
        ({"weight_decay": -1.0}, "weight_decay=-1.0"),
        ({"fraction": 0.5, "same_dropout": True}, "drop one"),
    ],
)
def test_settings_that_cannot_be_meant(options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        evenly.SAM(net(), **options)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: evenly.ASAM(net(), eta=-1.0), "eta=-1.0"),
        (lambda: evenly.ASAM(net(), adapt="kernel*"), "adapt='kernel\\*' matches no parameter"),
        (lambda: evenly.ASAM(net(), etta=0.1), "ASAM has no option 'etta'. Did you mean 'eta'"),
        (lambda: evenly.SAM(net(), evry=2), "SAM has no option 'evry'. Did you mean 'every'"),
        (lambda: evenly.SAM(net(), rule=None), "SAM has no option 'rule'"),
        (lambda: evenly.SAM(net(), lr=0.1), "SAM has no option 'lr', which belongs to your optimizer"),
        (lambda: evenly.SAM(net(), torch.optim.SGD, rho=0.1), r"SAM\(model, SGD\): SAM wraps no optimizer"),
        (
            lambda: evenly.ASAM(net(), torch.optim.SGD(net().parameters())),
            r"ASAM\(model, SGD\): ASAM wraps no optimizer",
        ),
        (lambda: evenly.SAM(net(), 0.1), r"SAM\(model, 0\.1\): give options by name"),
        (lambda: evenly.SAM(net()).first_step(zero_grad=True), "SAM computes gradients and takes no step"),
        (lambda: evenly.SAM(None), "got NoneType where a model or its parameters were expected"),
        (lambda: evenly.ASAM(None), "got NoneType where a model or its parameters were expected"),
        (lambda: evenly.SAM(3), "got int where a model or its parameters were expected"),
        (lambda: evenly.LSAM(net(), hed="2"), "LSAM has no option 'hed'. Did you mean 'head'"),
        (lambda: RandomPerturbation(net(), rho=0.1), r"no radius rho but a deviation sigma: RandomPert.*sigma=0\.01"),
        (lambda: evenly.LSAM(net(), head="9"), r"head='9' is not a module of the model. Known: 0, 1, 2\."),
        (lambda: evenly.LookSAM(net(), k=0), "k=0 is not a number of steps"),
        (lambda: evenly.LookSAM(net(), k=2.5), "k=2.5 is not a number of steps"),
        (lambda: evenly.LookSAM(net(), k="2"), "k='2' is not a finite number"),
        (lambda: evenly.ASAM(net(), eta="x"), "eta='x' is not a finite number"),
        (lambda: evenly.WSAM(net(), gamma="x"), "gamma='x' is not a finite number"),
        (lambda: evenly.FriendlySAM(net(), decay=1.0), "decay=1.0"),
        (lambda: evenly.MSAM(net(), momentum=1.0), "momentum=1.0"),
        (lambda: evenly.MSAM(net(), fraction=0.5), "makes no pass before it moves"),
        (lambda: evenly.GSAM(net(), alpha=float("nan")), "alpha=nan is not a finite number"),
        (lambda: evenly.SAM([]), "none of the 0 parameters"),
        (lambda: evenly.SAM(net().requires_grad_(False)), "requires_grad_"),
        (lambda: evenly.SAM([1.0]), "got float among the parameters"),
        (lambda: evenly.SAM(torch.ones(1)), r"pass \[tensor\]"),
        (lambda: evenly.SAM(list(net().parameters()), where=nn.Linear), "pass the model, not parameters"),
        (lambda: evenly.ASAM(net().parameters(), adapt="*weight*"), r"adapt='\*weight\*' .* model\.named_parameters"),
        (lambda: evenly.ASAM(net().named_parameters(), adapt="kernel*"), "matches no parameter name"),
        (lambda: evenly.SAM([{"parms": [1]}]), "a parameter group with 'parms' has no parameters"),
        (lambda: evenly.SAM([{"params": 3}]), "a parameter group with 'params' has no parameters"),
    ],
)
def test_rules_and_parameters_that_cannot_be_meant(build, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build()


@pytest.mark.parametrize("rule", [evenly.SAM, evenly.GSAM, evenly.MSAM, RandomPerturbation])
def test_displacing_frozen_parameters_only_is_refused_when_built_or_when_they_are_frozen(rule) -> None:
    model = net()
    sam = rule(model, where=model[2])
    model[2].requires_grad_(False)
    with pytest.raises(UsageError, match=rf"all that {rule.__name__} displaces is frozen \(2\.weight, 2\.bias\)"):
        sam.backward(lambda: model(torch.ones(4, 2)).sum())
    with pytest.raises(UsageError, match="is frozen"):
        rule(model, where=model[2])
    model[2].weight.requires_grad_(True)
    sam.backward(lambda: model(torch.ones(4, 2)).sum())


def test_groups_given_as_generators_have_their_own_radius_and_may_be_passed_to_the_optimizer_too() -> None:
    x, found = torch.randn(8, 2), []
    for as_given in (list, iter):
        torch.manual_seed(0)
        model = net()
        groups = [
            {"params": as_given(list(model[0].parameters()))},
            {"params": as_given(list(model[2].named_parameters())), "rho": 2.0},
        ]
        sam = evenly.SAM(groups, rho=0.05)
        assert sam.radii.at(0, 0.05, 4) == [0.05, 0.05, 2.0, 2.0]
        sam.backward(lambda: model(x).square().sum())  # noqa: B023
        found.append([p.grad for p in model.parameters()])
        assert len(list(groups[0]["params"])) == len(list(groups[1]["params"])) == 2
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("adapt", [None, "*", "2.*"])
def test_named_parameters_adapt_as_those_of_the_model_do(adapt: str | None) -> None:
    model = net()
    options = {} if adapt is None else {"adapt": adapt}
    groups = [{"params": model.named_parameters(), "weight_decay": 0.0}]
    flags = [evenly.ASAM(given, **options).adaptive for given in (model, model.named_parameters(), groups)]
    assert flags[0] == flags[1] == flags[2]
    assert all(evenly.ASAM(model.parameters()).adaptive)
    assert all(evenly.ASAM(model.parameters(), adapt="*").adaptive)


@pytest.mark.parametrize("rule", [evenly.SAM, evenly.GSAM, evenly.MSAM, evenly.LSAM])
@pytest.mark.parametrize(
    ("closure", "message"),
    [
        (lambda model, x: 1.0, "returned float, not a tensor"),
        (lambda model, x: None, "returned NoneType, not a tensor"),
        (lambda model, x: model(x), r"shape \(4, 1\)"),
        (lambda model, x: model(x).sum().detach(), "needs no gradient"),
    ],
)
def test_closures_that_cannot_be_differentiated(rule, closure, message: str) -> None:
    model, x = net(), torch.ones(4, 2)
    with pytest.raises(UsageError, match=message):
        rule(model).backward(lambda: (model(x), closure(model, x))[1])
    assert all(p.grad is None for p in model.parameters())


def test_a_closure_that_calls_backward_itself_is_sent_to_the_optimizer_face() -> None:
    model = net()

    def closure() -> torch.Tensor:
        loss = model(torch.ones(4, 2)).sum()
        loss.backward(retain_graph=True)
        return loss

    with pytest.raises(UsageError, match="SharpnessAware"):
        evenly.SAM(model).backward(closure)


def test_an_m_that_does_not_divide_names_those_that_do() -> None:
    model = net()
    sam = evenly.SAM(model, m=5)
    with pytest.raises(UsageError, match="m=5 does not divide the batch of 12: take m from 1, 2, 3, 4, 6, 12"):
        sam.backward(lambda x: model(x).mean(), torch.ones(12, 2))
    with pytest.raises(UsageError, match="m=5 divides the batch, so the batch must be given"):
        sam.backward(lambda: model(torch.ones(12, 2)).mean())
    with pytest.raises(UsageError, match=r"fraction=0\.5 divides the batch"):
        evenly.SAM(model, fraction=0.5).backward(lambda: model(torch.ones(12, 2)).mean())
    with pytest.raises(UsageError, match=r"\[3, 4\] examples"):
        sam.backward(lambda x, y: model(x).mean(), torch.ones(4, 2), torch.ones(3))


def test_whole_numbers_may_be_floats() -> None:
    model = net()
    sam = evenly.LookSAM(model, k=2.0, m=2.0, every=3.0)
    sam.backward(lambda x: model(x).mean(), torch.ones(4, 2))
    assert all(type(value) is int for value in (sam.rule.k, sam.m, sam.every))


def remembering(width: int, depth: int = 1) -> evenly.FriendlySAM:
    model = nn.Sequential(nn.Linear(2, width), *(nn.Linear(width, width) for _ in range(depth)))
    sam = evenly.FriendlySAM(model)
    sam.backward(lambda: model(torch.ones(4, 2)).square().sum())
    sam.num_steps = 7
    return sam


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (dict, r"the state has no memory, rho, settings, skipped, step: .* state_dict\(\) of FriendlySAM"),
        (lambda: remembering(3, 2).state_dict(), r"parameter 4 with shape \(3, 3\), and there are only 4"),
        (lambda: remembering(5).state_dict(), r"parameter 0 with shape \(5, 2\), and here it has \(3, 2\)"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_nothing_of_it_is_taken(state, message: str) -> None:
    sam = remembering(3)
    sam.num_steps, before = 2, {i: t.clone() for i, t in sam.memory.learned.items()}
    with pytest.raises(UsageError, match=message):
        sam.load_state_dict(state())
    assert sam.num_steps == 2
    assert all(torch.equal(sam.memory.learned[i], t) for i, t in before.items())


@pytest.mark.parametrize("rule", [evenly.SAM, evenly.LSAM, evenly.MSAM])
def test_a_loss_in_place_of_a_function_is_refused_with_the_line_that_is_meant(rule) -> None:
    model = net()
    with pytest.raises(UsageError, match=r"given a Tensor, .* give a function: sam\.backward\(lambda: "):
        rule(model).backward(model(torch.ones(4, 2)).sum())


def test_a_class_of_ones_own_takes_its_options_and_its_parents() -> None:
    class Mine(evenly.SAM):
        def __init__(self, model: nn.Module, *, colour: str = "red", **options) -> None:
            super().__init__(model, **options)

    assert Mine(net(), colour="blue", rho=0.1, every=2).every == 2
    with pytest.raises(UsageError, match=r"Mine has no option 'color'\. Did you mean 'colour'"):
        Mine(net(), color="blue")


def test_a_rule_of_ones_own_may_take_options_without_names() -> None:
    class Own(evenly.SAM):
        def __init__(self, model: Any, rho: float = 0.1) -> None:
            super().__init__(model, rho=rho)

    assert Own(net(), 0.3).rho == 0.3
    assert DisplacedGradient(net(), Rule(), rho=0.2).rho == 0.2
