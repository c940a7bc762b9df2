"""Hessian and Gauss–Newton products against dense float64 references, finite differences and closed forms."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev
from torch.nn import functional as F

from evenly.curvature import gauss_newton
from evenly.curvature import hessian as hessian_operator
from evenly.curvature.convolution import TwiceDifferentiableConvolutions
from evenly.errors import DataError, UsageError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def filled(model: nn.Module, seed: int = 0) -> nn.Module:
    """The model in float64 eval mode with weights drawn from a seed of its own."""
    rng = generator(seed)
    model = model.double().eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.5 * torch.randn(p.shape, generator=rng, dtype=p.dtype))
    return model


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(3, 9), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x.reshape(len(x), 2, 3)).chunk(3, dim=-1)
        return self.out(F.scaled_dot_product_attention(q, k, v)).mean(1)


def batch_norm() -> nn.Module:
    norm = nn.BatchNorm1d(4)
    norm.running_mean = torch.linspace(-1, 1, 4)
    return nn.Sequential(nn.Linear(6, 4), norm, nn.Tanh(), nn.Linear(4, 3))


MODELS = {
    "tanh": lambda: nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)),
    "relu in place": lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(inplace=True), nn.Linear(5, 3)),
    "convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)), nn.Conv2d(1, 2, 2, padding=1), nn.Tanh(), nn.Conv2d(2, 2, 2, stride=2),
        nn.Flatten(), nn.Linear(2 * 2, 3),
    ),
    "batch norm": batch_norm,
    "attention": Attention,
}  # fmt: skip


def example(name: str, num: int = 7) -> tuple[nn.Module, Tensor, Tensor]:
    x = torch.randn(num, 6, generator=generator(1), dtype=torch.float64)
    return filled(MODELS[name]()), x, torch.arange(num) % 3


def dense(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The Hessian of the mean cross-entropy by `torch.func`."""
    named = {name: p.detach() for name, p in model.named_parameters()}
    w = torch.cat([p.flatten() for p in named.values()])

    def value(w: Tensor) -> Tensor:
        parts = dict(zip(named, torch.split(w, [p.numel() for p in named.values()]), strict=True))
        return F.cross_entropy(functional_call(model, {n: parts[n].view(p.shape) for n, p in named.items()}, (x,)), y)

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return jacrev(jacrev(value))(w)


@pytest.mark.parametrize("name", MODELS)
def test_hessian_equals_the_dense_one_of_torch_func(name: str) -> None:
    model, x, y = example(name)
    torch.testing.assert_close(
        hessian_operator(model, (x, y), chunk=3).dense(), dense(model, x, y), rtol=1e-9, atol=1e-11
    )


@pytest.mark.parametrize("name", ["tanh", "convolution", "batch norm"])
def test_hessian_product_equals_the_finite_difference_of_gradients(name: str) -> None:
    model, x, y = example(name)
    params = list(model.parameters())
    v = torch.randn(sum(p.numel() for p in params), generator=generator(2), dtype=torch.float64)
    pieces = [part.view(p.shape) for part, p in zip(torch.split(v, [p.numel() for p in params]), params, strict=True)]

    def gradient(step: float) -> Tensor:
        moved = {n: p + step * d for (n, p), d in zip(model.named_parameters(), pieces, strict=True)}
        value = F.cross_entropy(functional_call(model, moved, (x,)), y)
        return torch.cat([g.flatten() for g in torch.autograd.grad(value, params)])

    difference = (gradient(1e-5) - gradient(-1e-5)) / 2e-5
    torch.testing.assert_close(hessian_operator(model, (x, y)) @ v, difference, rtol=1e-6, atol=1e-8)


def test_hessian_of_linear_regression_is_the_second_moment_of_the_inputs() -> None:
    x = torch.randn(9, 4, generator=generator(), dtype=torch.float64)
    model = filled(nn.Linear(4, 1, bias=False))
    H = hessian_operator(model, (x, torch.zeros(9, dtype=torch.float64)), loss="squared").dense()
    torch.testing.assert_close(H, x.T @ x / 9)


def test_logistic_hessian_of_a_linear_model_is_its_closed_form() -> None:
    x = torch.randn(9, 4, generator=generator(), dtype=torch.float64)
    model = filled(nn.Linear(4, 1, bias=False))
    p = torch.sigmoid(x @ model.weight.detach()[0])  # type: ignore[operator]
    H = hessian_operator(model, (x, torch.arange(9) % 2)).dense()
    torch.testing.assert_close(H, x.T @ torch.diag(p * (1 - p)) @ x / 9)


@pytest.mark.parametrize("sizes", [[7], [1, 6], [3, 1, 3]])
def test_batches_of_unequal_size_give_the_hessian_of_the_mean_over_all(sizes: list[int]) -> None:
    model, x, y = example("tanh")
    batches = list(zip(x.split(sizes), y.split(sizes), strict=True))
    torch.testing.assert_close(hessian_operator(model, batches).dense(), dense(model, x, y), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("make", [hessian_operator, gauss_newton])
def test_graphs_that_do_not_fit_the_memory_are_rebuilt_with_the_same_answer(make) -> None:  # type: ignore[no-untyped-def]
    model, x, y = example("tanh", num=40)
    kept, rebuilt = make(model, (x, y), chunk=10), make(model, (x, y), chunk=10, memory=0)
    v = torch.randn(kept.size, generator=generator(), dtype=torch.float64)
    assert torch.equal(kept @ v, rebuilt @ v)
    assert len(kept._kept) == 4
    assert len(rebuilt._kept) == 0


@pytest.mark.parametrize("name", MODELS)
def test_gauss_newton_equals_the_sum_of_its_definition(name: str) -> None:
    model, x, y = example(name)
    named = {n: p.detach() for n, p in model.named_parameters()}
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        jacobian = jacrev(lambda params: functional_call(model, params, (x,)))(named)
    J_NCP = torch.cat([j.flatten(2) for j in jacobian.values()], dim=2)
    p_NC = model(x).detach().softmax(1)
    Q_NCC = torch.diag_embed(p_NC) - p_NC[:, :, None] * p_NC[:, None, :]
    expected = torch.einsum("ncp,ncd,ndq->pq", J_NCP, Q_NCC, J_NCP) / len(x)
    torch.testing.assert_close(gauss_newton(model, (x, y), chunk=3).dense(), expected, rtol=1e-9, atol=1e-11)


def test_gauss_newton_equals_the_hessian_where_residuals_vanish() -> None:
    model, x, _ = example("tanh")
    targets = model(x).detach()
    G, H = (make(model, (x, targets), loss="squared").dense() for make in (gauss_newton, hessian_operator))
    torch.testing.assert_close(G, H, rtol=1e-9, atol=1e-11)
    off = hessian_operator(model, (x, targets + 1), loss="squared").dense()
    assert (off - H).abs().max() > 1e-2


def test_a_loss_may_be_any_function_and_only_some_parameters_may_be_asked_for() -> None:
    model, x, y = example("tanh")
    whole = hessian_operator(model, (x, y), loss=lambda f, t: F.cross_entropy(f, t, reduction="none")).dense()
    head = hessian_operator(model, (x, y), only=["2"]).dense()
    torch.testing.assert_close(whole, dense(model, x, y), rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(head, whole[28:, 28:], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("options", [{"reduction": "sum"}, {"weight": torch.tensor([1.0, 5.0, 9.0]).double()}])
def test_a_loss_that_is_no_mean_over_examples_is_refused(options: dict) -> None:  # type: ignore[type-arg]
    """Its Hessian would depend on the chunks."""
    model, x, _ = example("tanh")
    y = torch.arange(len(x)) % 3
    with pytest.raises(UsageError, match="is not the mean of their losses"):
        hessian_operator(model, (x, y), loss=lambda f, t: F.cross_entropy(f, t, **options))


@pytest.mark.parametrize("options", [{"weight": torch.tensor([1.0, 1.0, 9.0]).double()}, {"ignore_index": 2}])
def test_a_loss_that_weighs_classes_is_refused_also_if_the_data_begin_with_one_class(options: dict) -> None:  # type: ignore[type-arg]
    model, x, _ = example("tanh")
    y = torch.arange(len(x)).sub(len(x) - 3).clamp(0)  # 0, …, 0, 1, 2
    with pytest.raises(UsageError, match=r"is not the mean of their losses.*weighted by class, or labels that are"):
        hessian_operator(model, (x, y), loss=lambda f, t: F.cross_entropy(f, t, **options))
    equal = {"weight": torch.full((3,), 2.0).double()} if "weight" in options else {"ignore_index": 5}
    hessian_operator(model, (x, y), loss=lambda f, t: F.cross_entropy(f, t, **equal))


def test_a_loss_linear_in_the_parameters_has_no_curvature() -> None:
    model, x = filled(nn.Linear(6, 1)), example("tanh")[1]
    assert hessian_operator(model, (x, x[:, 0]), loss=lambda f, t: f.mean()).dense().abs().max() == 0


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2}, {"groups": 2}, {"dilation": 2}, {"bias": False}, {"padding": "same"}]
)
def test_fast_convolutions_have_the_second_derivative_of_torch(options: dict) -> None:  # type: ignore[type-arg]
    layer = nn.Conv2d(2, 4, 3, **options).double()
    x = torch.randn(3, 2, 6, 6, generator=generator(), dtype=torch.float64, requires_grad=True)
    with TwiceDifferentiableConvolutions():
        ours = layer(x)
    theirs = layer(x)
    inputs = [x, *layer.parameters()]

    def second(f: Tensor) -> list[Tensor]:
        first = torch.autograd.grad(f.pow(3).sum(), inputs, create_graph=True)
        return [*first, *torch.autograd.grad([g.pow(2).sum() for g in first], inputs)]

    for a, b in zip(second(ours), second(theirs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def in_place(model: nn.Module) -> None:
    with torch.no_grad():
        next(model.parameters()).add_(1)


def by_data(model: nn.Module) -> None:
    next(model.parameters()).data.add_(1)


def by_a_fused_step(model: nn.Module) -> None:
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    torch.optim.SGD(model.parameters(), lr=1.0, fused=True).step()


@pytest.mark.parametrize("change", [in_place, by_data, by_a_fused_step])
def test_changed_parameters_make_an_operator_refuse(change) -> None:  # type: ignore[no-untyped-def]
    model, x, y = example("tanh")
    H = hessian_operator(model, (x, y))
    H @ torch.zeros(H.size)
    change(model)
    with pytest.raises(UsageError, match="changed after this operator was made"):
        H @ torch.zeros(H.size)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda m, x, y: hessian_operator(m, x), "needs labels"),
        (lambda m, x, y: hessian_operator(m, (x, y[:3])), "7 inputs but 3 labels"),
        (lambda m, x, y: hessian_operator(m, (x, y.double()), loss="cross-entropy") @ torch.zeros(43), "labels.long"),
        (lambda m, x, y: hessian_operator(m, (x * float("nan"), y)), "output of example 0 is not finite"),
        (lambda m, x, y: hessian_operator(m, (x[:0], y[:0])), "no examples"),
    ],
)
def test_bad_data_are_refused_by_name(make, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match=said):
        make(*example("tanh"))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda m, x, y: hessian_operator(m, (x, y), loss="crossentropy"), "Did you mean 'cross-entropy'"),
        (lambda m, x, y: hessian_operator(m, (x, y), only=["9"]), "no trainable parameter '9'"),
        (lambda m, x, y: hessian_operator(m, (x, y), loss="logistic"), "one output, not 3"),
        (lambda m, x, y: hessian_operator(m, 3), "cannot read examples from a int"),
        (lambda m, x, y: hessian_operator(m, (x, y)) @ torch.zeros(3), "vectors of 43 numbers"),
        (lambda m, x, y: hessian_operator(m.requires_grad_(False), (x, y)), "no parameter that requires a gradient"),
    ],
)
def test_bad_arguments_are_refused_by_name(make, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=said):
        make(*example("tanh"))
