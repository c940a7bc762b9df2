"""Evaluate a closure again without the body of the network: the last layer gets the features of the first evaluation.

The features do not depend on the last layer, so a second evaluation with other head weights need not compute them
again. While a closure is recorded, every module called before the head keeps its output; when the closure is replayed,
those modules return the kept output. The outputs carry the graph of the first evaluation, so a backward pass from the
replayed loss goes through the body as if it had run again. A plain `nn.Sequential` keeps only the output of its last
module before the head, to save memory.

An output that was changed in place after it was kept is lost. That is harmless if a module of the body changed it, as
`nn.ReLU(inplace=True)` does, since that module is not run again; any other use of it raises `Overwritten`.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from evenly.errors import UsageError, did_you_mean

Forward = Callable[..., Any]


class Overwritten(Exception):
    """The second evaluation used an output that the first had changed in place: it must run the body again."""


class _Lost(Tensor):
    """Stands for an output that was changed in place; whatever is done with it raises."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise Overwritten


_LOST = torch.empty(0).as_subclass(_Lost)


class _Kept(NamedTuple):
    """A module's output, and the versions of its tensors when it was returned."""

    leaves: list[Any]
    versions: list[int]
    #: How the leaves make up the output: the model may change a list or dictionary that it got. None for a tensor.
    structure: Any

    @classmethod
    def of(cls, output: Any) -> "_Kept":
        leaves, structure = ([output], None) if isinstance(output, Tensor) else pytree.tree_flatten(output)
        return cls(leaves, [_version(leaf) for leaf in leaves], structure)

    def output(self) -> Any:
        leaves = [
            leaf if _version(leaf) == version else _LOST
            for leaf, version in zip(self.leaves, self.versions, strict=True)
        ]
        return leaves[0] if self.structure is None else pytree.tree_unflatten(leaves, self.structure)


def _version(leaf: Any) -> int:
    """How often a tensor was changed in place; tensors made in inference mode do not count, and cannot be."""
    return leaf._version if isinstance(leaf, Tensor) and not leaf.is_inference() else 0


def find_head(model: nn.Module, head: nn.Module | str | None) -> tuple[str, nn.Module]:
    """The module named or given as `head`, or else the last linear layer, with its name.

    >>> find_head(nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1), nn.Softmax(-1)), None)[0]
    '2'
    """
    if not isinstance(model, nn.Module):
        raise UsageError("LSAM looks for the last layer inside a model: pass the model, not its parameters")
    modules = dict(model.named_modules())
    if head is None:
        linear = [(name, m) for name, m in modules.items() if isinstance(m, nn.Linear)]
        if not linear:
            raise UsageError('the model has no nn.Linear to take for its last layer: name it with head="..."')
        return linear[-1]
    for name, module in modules.items():
        if module is head or name == head:
            if next(module.parameters(), None) is None:
                raise UsageError(f"head={name!r} ({type(module).__name__}) has no parameters to displace")
            return name, module
    named = repr(head) if isinstance(head, str) else type(head).__name__
    hint = did_you_mean(head, filter(None, modules)) if isinstance(head, str) else "Pass one of model.modules()."
    raise UsageError(f"head={named} is not a module of the model. {hint}")


class Replay:
    """Records the calls of a closure up to the head, and replays them.

    >>> import torch
    >>> net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    >>> replay = Replay(net, "1", net[1])
    >>> x = torch.ones(1, 2)
    >>> with replay.recording():
    ...     a = net(x)
    >>> with torch.no_grad():
    ...     _ = net[0].weight.zero_()
    >>> with replay.replaying():
    ...     torch.equal(net(x), a)
    True
    """

    def __init__(self, model: nn.Module, name: str, head: nn.Module) -> None:
        self.name, self.head = name, head
        self.before: list[tuple[str, nn.Module]] = []
        self.roots: list[nn.Module] = []
        self._collect(model, "", name)
        used = {id(p): owner for owner, m in self.before for p in m.parameters()}
        for p in head.parameters():
            if id(p) in used:
                raise UsageError(
                    f"the head {name!r} shares a parameter with {used[id(p)]!r}, so displacing it would change the "
                    f"features too: use SAM(model, where={name + '.*'!r}), which makes two passes"
                )
        #: Every module whose forward is wrapped.
        self.modules = [head, *self.roots, *(module for _, module in self.before)]
        self._wrapped: list[Forward] = []
        self._wrappers: dict[bool, list[Forward]] = {}
        self.reached = 0
        #: Whether the model has ever used an output that it had changed in place.
        self.lost = False
        self.kept: dict[int, deque[_Kept]] = {}
        self._inside: list[str] = []
        self._past_head = self._as_one = False

    def _collect(self, module: nn.Module, path: str, name: str) -> None:
        """Collect the modules off the path from the root to the head: they may be called before it."""
        if module is self.head:
            return
        # ModuleList and ModuleDict are never called themselves; their members are.
        if not isinstance(module, nn.ModuleList | nn.ModuleDict):
            if name == path or name.startswith(f"{path}." if path else ""):
                self.roots.append(module)
            else:
                self.before.append((path, module))
                return
        for child_name, child in module.named_children():
            self._collect(child, f"{path}.{child_name}" if path else child_name, name)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Within the context, keep the outputs of the modules before the head."""
        self.reached, self.kept = 0, {}
        own = self._patch(records=True)
        try:
            yield
        finally:
            self._restore(own)
        if not self.reached:
            raise UsageError(
                f"the head {self.name!r} was never reached: the closure must call the model, the head must be the "
                "layer that makes its output (head= names another), and torch.compile must not swallow it "
                "(compile the body, not the whole model)"
            )

    @contextlib.contextmanager
    def replaying(self) -> Iterator[None]:
        """Within the context, the modules before the head return their kept outputs; `Overwritten` if one was lost."""
        own = self._patch(records=False)
        try:
            yield
        finally:
            self._restore(own)

    def forget(self) -> None:
        """Drop the features, and with them the graph behind them."""
        self.kept = {}

    def _patch(self, *, records: bool) -> list[Forward | None]:
        """Put wrappers in place of the forwards, and return what `_restore` needs."""
        self._past_head = self._as_one = False
        forwards = [module.forward for module in self.modules]
        if forwards != self._wrapped:  # Building the wrappers takes longer than a tiny head.
            self._wrappers = {records: self._wrap(records) for records in (True, False)}
            self._wrapped = forwards
        own = [vars(module).get("forward") for module in self.modules]
        for module, wrapper in zip(self.modules, self._wrappers[records], strict=True):
            vars(module)["forward"] = wrapper
        return own

    def _restore(self, own: list[Forward | None]) -> None:
        for module, forward in zip(self.modules, own, strict=True):
            if forward is None:
                vars(module).pop("forward", None)  # A module may have two names.
            else:
                vars(module)["forward"] = forward

    def _wrap(self, records: bool) -> list[Forward]:
        """A wrapper for the forward of every module: the head, the roots around it, the modules before it."""
        wrap = self._record if records else self._replay
        roots = [self._split(root, records) for root in self.roots]
        if roots:
            roots[0] = self._restart(roots[0])
        before = [wrap(name, module, module.forward) for name, module in self.before]
        return [self._watch_head(self.head.forward), *roots, *before]

    def _watch_head(self, forward: Forward) -> Forward:
        def watched_head(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                raise UsageError(
                    f"the head {self.name!r} is called inside {self._inside[-1]!r}: name the outermost layer with "
                    "head=, or use SAM(model, where=...), which makes two passes"
                )
            self._past_head = True
            self.reached += 1
            return forward(*args, **kwargs)

        return watched_head

    def _restart(self, forward: Forward) -> Forward:
        def root_forward(*args: Any, **kwargs: Any) -> Any:
            self._past_head = False  # Another call of the model within the closure.
            return forward(*args, **kwargs)

        return root_forward

    def _record(self, name: str, module: nn.Module, forward: Forward) -> Forward:
        def recording_forward(*args: Any, **kwargs: Any) -> Any:
            self._inside.append(name)
            try:
                output = forward(*args, **kwargs)
            finally:
                self._inside.pop()
            if not self._past_head and not self._as_one:
                self.kept.setdefault(id(module), deque()).append(_Kept.of(output))
            return output

        return recording_forward

    def _replay(self, name: str, module: nn.Module, forward: Forward) -> Forward:
        def replaying_forward(*args: Any, **kwargs: Any) -> Any:
            if self._past_head:
                return forward(*args, **kwargs)
            return self._next_output(name, module)

        return replaying_forward

    def _next_output(self, name: str, module: nn.Module) -> Any:
        left = self.kept.get(id(module))
        if not left:
            raise UsageError(
                f"{name!r} was called more often in the second evaluation of the closure than in the first: "
                "the closure must do the same each time; use SAM(model, where=...), which makes two passes"
            )
        return left.popleft().output()

    def _split(self, root: nn.Module, records: bool) -> Forward:
        """The forward of a root; a plain Sequential keeps the members before the head as one output."""
        forward: Forward = root.forward
        if not (isinstance(root, nn.Sequential) and type(root).forward is nn.Sequential.forward):
            return forward
        way = {id(self.head), *map(id, self.roots)}

        def split_forward(*args: Any, **kwargs: Any) -> Any:
            (x,) = (*args, *kwargs.values())
            members: list[nn.Module] = list(root)  # Its modules may be replaced between steps.
            start = next((i for i, member in enumerate(members) if id(member) in way), 0)
            if self._past_head or not start:
                return forward(x)
            if records:
                self._as_one = True
                for member in members[:start]:
                    x = member(x)
                self._as_one = False
                self.kept.setdefault(id(root), deque()).append(_Kept.of(x))
            else:
                x = self._next_output(type(root).__name__, root)
            for member in members[start:]:
                x = member(x)
            return x

        return split_forward

    # The wrappers belong to this object and its modules: a copy builds its own.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_wrapped": [], "_wrappers": {}}
