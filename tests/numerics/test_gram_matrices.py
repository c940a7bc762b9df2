"""Gram matrices against one backward pass per row in float64, closed forms, and the Gauss–Newton operator."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize
from torch.utils.flop_counter import FlopCounterMode

from evenly.curvature import block_gram, gauss_newton, gram, per_example_gradients
from evenly.curvature.capture import capture_layers, find_layers
from evenly.curvature.row_graph import is_row_wise
from evenly.errors import UsageError
from evenly.models.observation import trainable_parameters

N = 9


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Twice(nn.Module):
    """The same layer called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(12, 12), nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(self.layer(x).tanh()).tanh())


class Tied(nn.Module):
    """Two layers that share a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(12, 12), nn.Linear(12, 12)
        self.b.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.a(x).tanh())[:, :2]


class Borrowed(nn.Module):
    """A weight used by its layer and, out of sight, a second time: only the numbers can tell."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(12, 12), nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.linear(self.layer(x).tanh(), self.layer.weight).tanh())


class TokensFirst(nn.Module):
    """Layers that see tokens × examples."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(4, 5), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x.view(len(x), 3, 4).transpose(0, 1)).tanh()).mean(0)


class OwnParameter(nn.Module):
    """A parameter that belongs to no layer."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.layer = nn.Parameter(torch.ones(12)), nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer((self.scale * x).tanh())


class Doubled(nn.Linear):
    """A subclass that computes something else."""

    def forward(self, input: Tensor) -> Tensor:
        return 2 * super().forward(input)


class Spectral(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight / weight.norm()


def parametrized() -> nn.Module:
    layer = nn.Linear(12, 2)
    parametrize.register_parametrization(layer, "weight", Spectral())
    return layer


def tokens() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (3, 4)), nn.Linear(4, 5), nn.LayerNorm(5), nn.Tanh(), nn.Linear(5, 2, bias=False), nn.Flatten()
    )


def images() -> nn.Module:
    norm = nn.BatchNorm2d(3)
    norm.running_var = torch.linspace(0.5, 2, 3)
    return nn.Sequential(
        nn.Unflatten(1, (1, 3, 4)), nn.Conv2d(1, 3, 2, padding=1, stride=(1, 2)), norm, nn.ReLU(inplace=True),
        nn.Conv2d(3, 4, 2, dilation=2, bias=False), nn.GroupNorm(2, 4), nn.Tanh(), nn.Flatten(), nn.LazyLinear(2),
    )  # fmt: skip


def grouped() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (2, 6)), nn.Conv1d(2, 4, 3, groups=2), nn.Tanh(), nn.Flatten(), nn.Linear(16, 2)
    )


def larger_images() -> nn.Module:
    """Enough positions that examples become groups of one convolution."""
    return nn.Sequential(
        nn.Unflatten(1, (3, 4, 1)), nn.Upsample((9, 9)), nn.Conv2d(3, 2, 3, padding=1), nn.Tanh(),
        nn.Conv2d(2, 2, (3, 2), stride=(1, 2), dilation=(1, 2), padding=2), nn.Tanh(), nn.Flatten(), nn.LazyLinear(2),
    )  # fmt: skip


def volumes() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (1, 2, 2, 3)), nn.Conv3d(1, 2, 2), nn.Tanh(), nn.Flatten(), nn.Linear(4, 2))


def strings() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (2, 6)), nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Flatten(), nn.Linear(12, 2)
    )


def frozen() -> nn.Module:
    model = nn.Sequential(nn.Linear(12, 4), nn.Tanh(), nn.Linear(4, 2))
    model[0].weight.requires_grad_(False)  # type: ignore[union-attr]
    return model


LAYERWISE = {
    "linear": lambda: nn.Sequential(nn.Linear(12, 5), nn.ReLU(inplace=True), nn.Linear(5, 2, bias=False)),
    "tokens": tokens,
    "images": images,
    "larger images": larger_images,
    "volumes": volumes,
    "grouped": grouped,
    "strings": strings,
    "frozen": frozen,
}


class Recurrent(nn.Module):
    """A recurrent layer, for which `vmap` has no rule."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layer, self.head = kind(4, 5, batch_first=True), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x.view(len(x), 3, 4))[0][:, -1])


class Branching(nn.Module):
    """Control flow that looks at the values of an example."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(12, 2), nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([(self.a if float(row.sum()) > 0 else self.b)(row[None]) for row in x])


class Gated(nn.Module):
    """A weight that is used a second time, but only for examples whose first entry is above 5."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(12, 12), nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x).tanh()
        return self.head(h + (x[:, :1] > 5) * F.linear(h, self.layer.weight))


class Sorter(nn.Module):
    """Examples are sorted by their first entry on their way through the network, and put back."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(12, 5), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        order = x[:, 0].argsort(stable=True)
        return self.head(self.layer(x[order]).tanh())[order.argsort()]


BY_EXAMPLE = {
    "rnn": lambda: Recurrent(nn.RNN),
    "lstm": lambda: Recurrent(nn.LSTM),
    "gru": lambda: Recurrent(nn.GRU),
    "prelu": lambda: nn.Sequential(nn.Linear(12, 5), nn.PReLU(5), nn.Linear(5, 2)),
    "branching": Branching,
    "called twice": Twice,
    "tied": Tied,
    "borrowed": Borrowed,
    "tokens first": TokensFirst,
    "own parameter": OwnParameter,
    "subclass": lambda: nn.Sequential(Doubled(12, 5), nn.Tanh(), nn.Linear(5, 2)),
    "parametrized": parametrized,
    "circular": lambda: nn.Sequential(
        nn.Unflatten(1, (2, 6)), nn.Conv1d(2, 4, 3, padding=1, padding_mode="circular"), nn.Flatten(), nn.Linear(24, 2)
    ),
}  # fmt: skip
NETWORKS = {**LAYERWISE, **BY_EXAMPLE}


def example(name: str, num: int = N) -> tuple[nn.Module, Tensor, Tensor]:
    rng = generator(1)
    model = NETWORKS[name]().eval()
    x = torch.randn(num, 12, generator=rng, dtype=torch.float64)
    model.double()
    model(x)  # lazy layers take shape
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.7 * torch.randn(p.shape, generator=rng, dtype=p.dtype))
    return model, x, torch.arange(num) % 2


def rows(model: nn.Module, x: Tensor, loss: bool = False, y: Tensor | None = None) -> Tensor:
    """One backward pass for each output of each example: the slow truth, N × C × P."""
    params = list(trainable_parameters(model).values())
    found = []
    for i in range(len(x)):
        f = model(x[i : i + 1])[0]
        values = [F.cross_entropy(f[None], y[i : i + 1])] if loss and y is not None else list(f)
        for value in values:
            gradient = torch.autograd.grad(value, params, retain_graph=True, materialize_grads=True)
            found.append(torch.cat([g.flatten() for g in gradient]))
    return torch.stack(found).view(len(x), -1, found[0].numel())


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("chunk", [4, 100])
def test_block_gram_equals_one_backward_pass_per_row(name: str, chunk: int) -> None:
    model, x, _ = example(name)
    J = rows(model, x).flatten(0, 1)
    torch.testing.assert_close(block_gram(model, x, chunk=chunk), J @ J.T, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", NETWORKS)
def test_gram_of_losses_equals_one_backward_pass_per_example(name: str) -> None:
    model, x, y = example(name)
    G = rows(model, x, loss=True, y=y)[:, 0]
    torch.testing.assert_close(gram(model, (x, y), chunk=5), G @ G.T, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(gram(model, x, labels=y, loss="cross-entropy"), G @ G.T, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(per_example_gradients(model, (x, y), chunk=4), G, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", NETWORKS)
def test_layers_are_trusted_exactly_where_they_tell_the_truth(name: str) -> None:
    model, x, _ = example(name)

    def slopes(f: Tensor, y: Tensor | None) -> Tensor:
        return torch.eye(f.shape[1], dtype=f.dtype).expand(len(f), -1, -1)

    assert (find_layers(model, trainable_parameters(model), (x, None), slopes) is not None) == (name in LAYERWISE)


@pytest.mark.parametrize("chunk", [4, 100])
def test_a_weight_that_is_borrowed_for_few_examples_is_found_out_and_said(chunk: int) -> None:
    model = Gated().double()
    x = torch.randn(12, 12, generator=generator(), dtype=torch.float64)
    x[9, 0] = 6.0  # not among the first two, on which the layers are tried
    J = rows(model, x).flatten(0, 1)
    with pytest.warns(UserWarning, match="Gated: gradients layer by layer are not those of the whole network"):
        K = block_gram(model, x, chunk=chunk)
    torch.testing.assert_close(K, J @ J.T, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", [Gated, Sorter])
def test_what_happens_to_later_examples_only_is_found_out_with_one_row_an_example_too(kind: type[nn.Module]) -> None:
    model = kind().double()
    x = torch.randn(12, 12, generator=generator(), dtype=torch.float64)
    x[:, 0] = torch.arange(12) / 4.0  # sorted, so that nothing moves
    x[9, 0], x[10, 0] = (6.0, 2.5) if kind is Gated else (2.5, 2.25)  # but one pair of the last
    y = torch.arange(12) % 2
    G = rows(model, x, loss=True, y=y)[:, 0]
    with pytest.warns(UserWarning, match=f"{kind.__name__}: gradients layer by layer are not those"):
        K = gram(model, (x, y))
    torch.testing.assert_close(K, G @ G.T, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", [*NETWORKS, "gated", "sorter"])
def test_the_graph_proves_only_what_is_true(name: str) -> None:
    made = {"gated": Gated, "sorter": Sorter}
    model, x, _ = example(name) if name in NETWORKS else (made[name]().double(), torch.randn(N, 12).double(), None)
    proved = is_row_wise(model(x), list(trainable_parameters(model).values()))
    if name in LAYERWISE:
        assert proved == (name != "tokens")  # examples and tokens are one axis within its products
    elif name in ("called twice", "tied", "borrowed", "tokens first", "branching", "gated", "sorter"):
        assert not proved


@pytest.mark.parametrize(
    "mix",
    [
        lambda h: h.flip(0),
        lambda h: h.mT.reshape(9, 9),
        lambda h: h - h.mean(0),
        lambda h: h.sum(0, keepdim=True).expand(9, 9) * h,
        lambda h: h * h.squeeze(-1).mean(-1),
        lambda h: h.softmax(0),
        lambda h: h @ h,
        lambda h: torch.ones(9, 9, dtype=h.dtype) @ h,
        lambda h: (h[:, None] * h).sum(1),
        lambda h: (h.view(9, 9, 1) * h).sum(2),
        lambda h: F.layer_norm(h, (9, 9)),
        lambda h: F.batch_norm(h, None, None, training=True),
        lambda h: torch.cat([h[4:], h[:4]], 0),
        lambda h: h.cumsum(0),
        lambda h: h.roll(1, 0),
    ],
)
def test_no_operation_that_mixes_examples_passes_for_one_that_does_not(mix: Callable[[Tensor], Tensor]) -> None:
    """As many features as examples, so that shapes give nothing away."""
    layer = nn.Linear(12, 9).double()
    x = torch.randn(9, 12, generator=generator(), dtype=torch.float64)
    assert is_row_wise(layer(x).tanh(), list(layer.parameters()))
    assert not is_row_wise(mix(layer(x)), list(layer.parameters()))


@pytest.mark.parametrize("num", [40, 200])
def test_the_check_of_a_plain_network_costs_no_arithmetic(num: int) -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(8, 1),
    ).eval()  # fmt: skip
    x = torch.randn(num, 3, 16, 16, generator=generator())
    layers = find_layers(model, trainable_parameters(model), (x, None), lambda f, y: torch.ones_like(f)[:, None])
    assert layers is not None
    counts = []
    for check in (False, True):
        with FlopCounterMode(display=False) as counter:
            capture_layers(model, (x, None), lambda f, y: torch.ones_like(f)[:, None], layers, check=check)
        counts.append(counter.get_total_flops())
    assert counts[1] == counts[0] > 0


@pytest.mark.parametrize("tokens", [2, 3, 4, 9])
def test_tokens_first_is_found_out_even_with_as_many_tokens_as_examples(tokens: int) -> None:
    model = TokensFirst().double()
    model.forward = lambda x: model.head(model.layer(x.view(len(x), tokens, 4).transpose(0, 1)).tanh()).mean(0)  # type: ignore[method-assign]
    for num in (tokens, 3):
        x = torch.randn(num, tokens * 4, generator=generator(), dtype=torch.float64)
        J = rows(model, x).flatten(0, 1)
        torch.testing.assert_close(block_gram(model, x), J @ J.T, rtol=1e-9, atol=1e-10)


def test_gram_of_a_linear_network_is_its_closed_form() -> None:
    x = torch.randn(600, 4, generator=generator(), dtype=torch.float64)  # more than one block of rows
    model = nn.Sequential(nn.Linear(4, 3, bias=False), nn.Linear(3, 1, bias=False)).double()
    W, v = (p.detach() for p in model.parameters())
    hidden = x @ W.T
    torch.testing.assert_close(gram(model, x), (x @ x.T) * (v @ v.T) + hidden @ hidden.T, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("loss", "name"), [("cross-entropy", "linear"), ("cross-entropy", "images"), ("squared", "linear")]
)
def test_gauss_newton_blocks_have_the_eigenvalues_and_norms_of_the_matrices(loss, name: str) -> None:  # type: ignore[no-untyped-def]
    model, x, y = example(name)
    targets = y if loss == "cross-entropy" else torch.zeros(N, 2, dtype=torch.float64)
    K = block_gram(model, x, loss=loss)
    G = gauss_newton(model, (x, targets), loss=loss).dense()
    nonzero = torch.linalg.eigvalsh(G).flip(0)[: len(K)]
    torch.testing.assert_close(torch.linalg.eigvalsh(K).flip(0)[: len(nonzero)] / N, nonzero, rtol=1e-8, atol=1e-10)
    own = [gauss_newton(model, (x[i : i + 1], targets[i : i + 1]), loss=loss).dense() for i in (0, 1)]
    block = K.view(N, 2, N, 2)[0, :, 1, :]
    assert block.square().sum().item() == pytest.approx((own[0] @ own[1]).trace().item(), rel=1e-8)


def test_logistic_block_gram_of_a_linear_model_is_its_closed_form() -> None:
    x = torch.randn(5, 3, generator=generator(), dtype=torch.float64)
    model = nn.Linear(3, 1, bias=False).double()
    p = model(x).detach()[:, 0].sigmoid()
    expected = (x @ x.T) * (p * (1 - p)).sqrt().outer((p * (1 - p)).sqrt())
    torch.testing.assert_close(block_gram(model, x, loss="logistic"), expected)


@pytest.mark.parametrize("name", ["linear", "images", "tied"])
def test_chunks_that_do_not_fit_the_memory_give_the_same_gram(name: str) -> None:
    model, x, y = example(name)
    torch.testing.assert_close(gram(model, (x, y), chunk=2, memory=0), gram(model, (x, y)), rtol=1e-12, atol=1e-12)


def test_only_some_parameters_may_be_asked_for() -> None:
    model, x, _ = example("linear")
    J = rows(model, x).flatten(0, 1)[:, 60:65]
    torch.testing.assert_close(block_gram(model, x, only=["0.bias"]), J @ J.T, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda m, x: gram(m, x), "2 outputs: give labels, or use block_gram"),
        (lambda m, x: gram(m, x, loss="cross-entropy"), "need labels"),
        (lambda m, x: per_example_gradients(m, x), "2 outputs"),
    ],
)
def test_what_is_ambiguous_is_refused(make, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=said):
        make(*example("linear")[:2])
