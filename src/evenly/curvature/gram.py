"""Inner products between the gradients of examples, layer by layer.

Shapes: N examples, C rows of one example's Jacobian, P parameters.
"""

import itertools
import logging
import math
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from evenly.curvature import soundness
from evenly.curvature.capture import Layers, Pieces, Slopes, capture, find_layers
from evenly.curvature.chunks import Chunks, Data, as_chunks
from evenly.curvature.losses import Loss, Name, curvature_root, loss_name, mean_loss
from evenly.curvature.operator import GIBIBYTE
from evenly.errors import SetupError, UsageError
from evenly.memory import budget
from evenly.models.observation import observing, trainable_parameters

_log = logging.getLogger(__name__)
BLOCK = 256  # rows multiplied at once: the products of one pair of blocks stay in the cache


def gram(
    model: nn.Module,
    data: Data,
    *,
    loss: Loss | None = None,
    labels: Tensor | None = None,
    only: Sequence[str] | None = None,
    chunk: int | None = None,
    memory: int = GIBIBYTE,
) -> Tensor:
    """K_ij = ⟨∇_i, ∇_j⟩, N × N: of the outputs of a scalar network, or of the examples' losses where labels are given.

    Computed layer by layer: a linear layer adds ⟨a_i, a_j⟩⟨δ_i, δ_j⟩, so that N × P numbers are never stored
    (Goodfellow, 2015). A network with a layer called twice, tied weights, or a layer without a rule is differentiated
    example by example instead: slower, and as exact. Every call checks all examples: the graph of the forward pass
    proves that each weight is used in its layer only and that no example changes its place; if it cannot, a random
    mixture of all gradients is compared with one backward pass of the whole network. If they differ, `gram` warns and
    also differentiates example by example.

    Parameters
    ----------
    data
        Inputs (a tensor, or batches of them) for gradients of the outputs; with labels (a `Labelled`, a pair, batches
        of pairs, or the argument `labels`) for gradients of the losses.
    only
        Names of the parameters to differentiate by, whole or their beginning.
    chunk
        Examples per forward pass; by default 1,024 for linear layers and 128 for others.
    memory
        Bytes that captured layers may take beside K; chunks beyond that are captured again for each pair. K itself
        is refused, before any work, if it would not fit into the memory that is free.

    Examples
    --------
    >>> gram(nn.Linear(2, 1), torch.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()  # ⟨x, x'⟩ + 1
    [[6.0, 12.0], [12.0, 26.0]]
    """
    chunks = as_chunks(data, model=model, size=chunk or _chunk(model), labels=labels)
    x, y = chunks[0]
    outputs = soundness.check(model, x)
    if y is None:
        if loss is not None:
            raise UsageError("gradients of a loss need labels: give labels=, or (inputs, labels).")
        if outputs[0].numel() > 1:
            raise UsageError(f"the network has {outputs[0].numel()} outputs: give labels, or use block_gram.")

        def slopes(f: Tensor, y: Tensor | None) -> Tensor:
            return torch.ones_like(f)[:, None]
    else:
        mean = mean_loss(loss, outputs, y)

        def slopes(f: Tensor, y: Tensor | None) -> Tensor:
            assert y is not None
            leaf = f.detach().requires_grad_(True)
            return torch.autograd.grad(len(f) * mean(leaf, y), leaf)[0][:, None]

    return _assemble(model, chunks, slopes, only, memory, rows=1)


def block_gram(
    model: nn.Module,
    data: Data,
    *,
    loss: Name | None = None,
    only: Sequence[str] | None = None,
    chunk: int | None = None,
    memory: int = GIBIBYTE,
) -> Tensor:
    """The Gram matrix of all outputs of all examples: (N·C) × (N·C), row i·C + c for output c of example i.

    Without `loss`, block (i, j) is K_ij = J_i J_jᵀ. With "squared", "logistic" or "cross-entropy" it is A_i A_jᵀ with
    A_i = B_iᵀ J_i and B_i B_iᵀ = Q_i, the Hessian of the loss in the outputs; then A_iᵀ A_i = J_iᵀ Q_i J_i is example
    i's Gauss–Newton matrix, λmax(K)/N that of the mean loss, and ‖K_ij‖_F = √Tr(H_i H_j). (B_iᵀ is Q_i^½ up to a
    rotation, which changes none of these.) Labels are not needed. `K.view(N, C, N, C)[i, :, j, :]` is one block.

    >>> block_gram(nn.Linear(1, 2, bias=False), torch.tensor([[1.0], [3.0]])).tolist()
    [[1.0, 0.0, 3.0, 0.0], [0.0, 1.0, 0.0, 3.0], [3.0, 0.0, 9.0, 0.0], [0.0, 3.0, 0.0, 9.0]]
    """
    chunks = as_chunks(data, model=model, size=chunk or _chunk(model))
    outputs = soundness.check(model, chunks[0][0])
    rows = outputs[0].numel()
    name = None if loss is None else loss_name(loss, outputs, None)

    def slopes(f: Tensor, y: Tensor | None) -> Tensor:
        f_NC = f.detach().reshape(len(f), rows)
        if name is None:
            roots_NCC = torch.eye(rows, dtype=f.dtype, device=f.device).expand(len(f), rows, rows)
        else:
            roots_NCC = curvature_root(name, f_NC).mT
        return roots_NCC.reshape(len(f), rows, *f.shape[1:])

    return _assemble(model, chunks, slopes, only, memory, rows=rows)


def _assemble(
    model: nn.Module, chunks: Chunks, slopes: Slopes, only: Sequence[str] | None, memory: int, *, rows: int
) -> Tensor:
    params = trainable_parameters(model, only=only)
    like = next(iter(params.values()))
    check_room(chunks.num_examples, rows, entry=like.element_size(), device=like.device)
    with observing(model, training=None), torch.enable_grad():
        layers = find_layers(model, params, chunks[0], slopes)
        for way in (layers, None):
            if way is None:
                chunks = _fit_memory(chunks, params.values(), memory, rows=rows)
            checked: set[int] = set()  # a chunk that is captured again needs no second check

            def capture_chunk(
                i: int, way: Layers | None = way, chunks: Chunks = chunks, checked: set[int] = checked
            ) -> Pieces | None:
                fresh = i not in checked
                checked.add(i)
                return capture(model, chunks[i], slopes, params, way, check=fresh)

            K = _pair_chunks(chunks, capture_chunk, memory, rows=rows)
            if K is not None:
                return K
    raise AssertionError("differentiation example by example always gives an answer")


def check_room(num: int, rows: int, *, entry: float, device: torch.device | str) -> None:
    """Refuse a Gram matrix of `num` examples × `rows` that does not fit into memory, at `entry` bytes per entry.

    >>> check_room(10**6, 10, entry=4, device="cpu")
    Traceback (most recent call last):
    evenly.errors.SetupError: the Gram matrix of 1,000,000 examples × 10 rows needs 400,000.0 GB...
    """
    needed, allowed = entry * (num * rows) ** 2, budget(device)
    if needed > allowed:
        most = int(math.sqrt(allowed / entry) / rows)
        raise SetupError(
            f"the Gram matrix of {num:,} examples × {rows} row{'s' * (rows != 1)} needs {needed / 1e9:,.1f} GB, more "
            f"than the {allowed / 1e9:,.1f} GB that may be used on {device}. Take at most {most} examples "
            f"(--examples {most}), or set EVENLY_MEMORY, in GB, if more may be used."
        )


def _fit_memory(chunks: Chunks, params: Iterable[Tensor], memory: int, *, rows: int) -> Chunks:
    """Chunks so small that the full gradients of two of them fit into memory; each is as large as the model."""
    weight = rows * sum(p.numel() * p.element_size() for p in params)
    most = max(1, memory // (2 * weight))
    if most < max(chunks.sizes):
        _log.info(
            "the Gram matrix is made example by example, %d at a time: %.1f MB of gradients each, memory = %.1f GB.",
            most, weight / 1e6, memory / 1e9,
        )  # fmt: skip
    return chunks.finer(most)


def _pair_chunks(
    chunks: Chunks, capture_chunk: Callable[[int], Pieces | None], memory: int, *, rows: int
) -> Tensor | None:
    """K from the pieces of all pairs of chunks: one half is computed, the other mirrored. None if a capture fails."""
    ends = list(itertools.accumulate(chunks.sizes, initial=0))
    kept: dict[int, Pieces] = {}
    free = memory
    K: Tensor | None = None
    pairs = [(a, b) for a in range(len(chunks)) for b in range(a, -1, -1)]
    for i, j in pairs:
        right = kept.get(j) or capture_chunk(j)
        if right is None:
            return None
        weight = sum(piece.bytes for piece in right)
        if j not in kept and weight <= free:
            kept[j], free = right, free - weight
        if j == i:
            left = right
            if K is None:
                K = right[0].empty(ends[-1] * rows)
        assert K is not None
        for p in range(0, chunks.sizes[i], BLOCK):
            for q in range(0, p + 1 if i == j else chunks.sizes[j], BLOCK):
                block = _inner(left, right, slice(p, p + BLOCK), slice(q, q + BLOCK))
                row, column = (ends[i] + p) * rows, (ends[j] + q) * rows
                K[row : row + block.shape[0], column : column + block.shape[1]] = block
                if row != column:
                    K[column : column + block.shape[1], row : row + block.shape[0]] = block.T
    return K


def _inner(left: Pieces, right: Pieces, p: slice, q: slice) -> Tensor:
    # Pieces of one layer are of one kind in every chunk, which the type of a list cannot say.
    blocks = (a.rows(p).inner(b.rows(q)) for a, b in zip(left, right, strict=True))  # type: ignore[arg-type]
    total = next(blocks)
    for block in blocks:
        total += block
    return total


def _chunk(model: nn.Module) -> int:
    """Convolutions and attention hold many positions per example; linear layers one."""
    owners = [module for module in model.modules() if module._parameters]
    return 1024 if all(isinstance(module, nn.Linear) for module in owners) else 128
