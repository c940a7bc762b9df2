"""Many small runs as one: K networks of one shape, trained side by side by batched algebra.

Shapes: K members, P parameters of each, N examples, C outputs, F features.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from evenly.data.labelled import Labelled, scale_pixels
from evenly.errors import UsageError
from evenly.models import check
from evenly.progress import Bar
from evenly.training.ensemble import arguments, checkpoints, networks
from evenly.training.ensemble.arguments import Numbers
from evenly.training.ensemble.feed import Feed
from evenly.training.ensemble.general import General
from evenly.training.ensemble.group import make_groups
from evenly.training.ensemble.layers import Linear
from evenly.training.ensemble.layout import Views, layout_of, stack_parameters
from evenly.training.ensemble.losses import Given, Terms, loss_of
from evenly.training.ensemble.networks import Network
from evenly.training.ensemble.passes import Passes, Rows, forward
from evenly.training.ensemble.plan import Plan
from evenly.training.ensemble.recorded import Recorded
from evenly.training.objective import unsmoothed

Measure = Callable[[Views, int], dict[str, Tensor]]


class Ensemble:
    """K networks of one shape, trained together; each takes the steps of a separate run, up to rounding.

    Anything written as a number may be a sequence of K of them: seeds × ρ × learning rates × data in one ensemble.

    Parameters
    ----------
    models
        The initial members; they are copied and not changed. `disentangled`, `cubic`, `relu2` and `mlp` of
        `evenly.models` run in batched algebra written by hand, other modules through `torch.func` (all of them with
        `by_hand=False`).
    data
        One data set for all, or one for each; members may share.
    lr, momentum, weight_decay
        As of `torch.optim.SGD`; `schedule(step)` is a factor on every lr.
    rule
        "sgd", a rule of the SAM family by its name in recipes, or Springer's interventions "importance", "rate",
        "both". ρ = 0 is a plain step, at the cost of one.
    rho
        The size of the displacement (σ for "random").
    batch_size, seeds
        Each member orders its data by `evenly.data.batches.order` with its own seed; None is full batch.
        "random" draws from the seed too.
    loss
        "logistic", "squared" ½‖f − y‖², "cross-entropy", or a function of (outputs, labels); "auto" is logistic loss
        for one output and cross-entropy for several.
    weights
        How often each example counts in the mean, N or K × N; whole numbers are a multiset.
    copies
        How often each example is shown in an epoch, N or K × N whole numbers. Epochs then differ in length, and
        batches run on across epochs: all members take equally many steps of whole batches.
    noise
        σ of Gaussian noise on each example's input in [0, 1], N or K × N; drawn anew each time it is shown. Unlike all
        else of a member, its draws depend on how many members train together.
    label_smoothing, logit_penalty
        As of the training loop: s turns targets into (1 − s)y + s/C, λ adds λ/2·‖outputs‖². `loss()` leaves both out.
    eta, adapt
        ASAM's η and the parameters that adapt, by name.
    easy, hard
        v* of the interventions.

    Examples
    --------
    >>> from evenly.data import load
    >>> from evenly.models import build
    >>> data = load("spirals", seed=0).train
    >>> models = [build("disentangled", input_shape=(4,), num_classes=2, rng=seed) for seed in (0, 1)]
    >>> ensemble = Ensemble(models, data, lr=0.01, rule="sam", rho=[0.1, 1.0], batch_size=5, seeds=[0, 1])
    >>> seen = ensemble.run(10, measure=lambda params, step: {"v": params["head.weight"][:, 0, 1]}, at=[0, 5, 10])
    >>> seen.steps, seen["v"].shape, ensemble.outputs(data.inputs).shape
    ([0, 5, 10], torch.Size([3, 2]), torch.Size([2, 300, 1]))
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        data: Labelled | Sequence[Labelled],
        *,
        lr: Numbers,
        rule: str | Sequence[str] = "sgd",
        rho: Numbers = 0.0,
        momentum: Numbers = 0.0,
        weight_decay: Numbers = 0.0,
        schedule: Callable[[int], float] | None = None,
        batch_size: int | None = None,
        seeds: int | Sequence[int] = 0,
        loss: Given = "auto",
        weights: Tensor | Sequence[Any] | None = None,
        copies: Tensor | Sequence[Any] | None = None,
        noise: Tensor | Sequence[Any] | None = None,
        label_smoothing: Numbers = 0.0,
        logit_penalty: Numbers = 0.0,
        eta: float = 0.01,
        adapt: str = "*weight*",
        easy: Numbers = 1.0,
        hard: Numbers | None = None,
        by_hand: bool = True,
    ) -> None:
        models = list(models)
        self.num_members = num = len(models)
        self.layout = layout = layout_of(models)
        self._template = models[0]
        distinct, which = arguments.data_sets(data, num)
        check(models[0], distinct[0].shape, distinct[0].num_classes)
        written_out = networks.by_hand(models[0], distinct[0].shape) if by_hand else None
        self._network: Network = written_out if written_out is not None else General(models[0])
        rho = arguments.numbers("rho", rho, num)
        rules = arguments.rule_names(rule, rho, head_shape=self._head_shape())
        size, num_examples = arguments.whole_batch_size(batch_size, len(distinct[0])), len(distinct[0])
        weights_KN = arguments.example_weights(weights, num, num_examples)
        copies_KN = arguments.example_copies(copies, num, num_examples, batch_size=size)
        noise_KN = arguments.example_noise(noise, num, num_examples, batch_size=size)
        self._plan = plan = Plan(
            rule=rules,
            rho=rho,
            lr=arguments.numbers("lr", lr, num),
            momentum=arguments.numbers("momentum", momentum, num, below=1),
            weight_decay=arguments.numbers("weight_decay", weight_decay, num),
            label_smoothing=arguments.numbers("label_smoothing", label_smoothing, num, below=1),
            logit_penalty=arguments.numbers("logit_penalty", logit_penalty, num),
            seeds=arguments.seed_numbers(seeds, num),
            star=arguments.star(easy, hard, rules),
            batch_size=size,
            eta=arguments.numbers("eta", eta, 1)[0],
            adapt=adapt,
            loss=loss if isinstance(loss, str) else "a function",
            data=[distinct[place].fingerprint for place in which],
            weights=arguments.fingerprint_of(weights_KN),
            copies=arguments.fingerprint_of(copies_KN),
            noise=arguments.fingerprint_of(noise_KN),
        )
        self.schedule = schedule
        self.step = 0
        self._shape = distinct[0].shape
        # Internally, members are in the plan's order; arguments and results are in the order they were given.
        self._order = torch.tensor(plan.order(), device=layout.device)
        self._place = self._order.argsort()
        self._w_KP = stack_parameters(models)[self._order]
        self._velocity_KP = torch.zeros_like(self._w_KP) if any(plan.momentum) else None
        inputs = [self._prepare(each.in_memory().gather(range(len(each)))) for each in distinct]
        num_outputs = self._num_outputs(inputs[0])
        self._loss = loss_of(loss, num_outputs=num_outputs)
        targets = [self._loss.targets(each.labels, num_outputs, layout.dtype) for each in distinct]
        self._feed = Feed(
            torch.stack(inputs),
            torch.stack(targets).to(layout.device),
            which_K=torch.tensor(which, device=layout.device)[self._order],
            seeds=[plan.seeds[member] for member in plan.order()],
            batch_size=plan.batch_size,
            weights_KN=None if weights_KN is None else weights_KN.to(layout.device, layout.dtype)[self._order],
            copies_KN=None if copies_KN is None else copies_KN.to(layout.device)[self._order],
            noise_KN=None if noise_KN is None else noise_KN.to(layout.device, layout.dtype)[self._order],
        )
        passes = Passes(self._network, self._loss, layout, self._terms(plan))
        self._groups = make_groups(plan, feed=self._feed, passes=passes, w_KP=self._w_KP, velocity_KP=self._velocity_KP)
        self._checkpoint = checkpoints.next_checkpoint(self._w_KP)

    @property
    def steps_per_epoch(self) -> int:
        """Batches in an epoch; 1 for full batch."""
        return self._feed.steps_per_epoch

    def parameters(self) -> Views:
        """Each parameter of all members, K × its shape, in the order the members were given: a copy."""
        return self.layout.views(self._w_KP[self._place])

    def member(self, number: int) -> nn.Module:
        """A model of its own with the weights of one member."""
        if not 0 <= number < self.num_members:
            raise UsageError(f"there is no member {number}: they are numbered from 0 to {self.num_members - 1}.")
        model = deepcopy(self._template)
        own = {name: t[number] for name, t in self.parameters().items()}
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(own[name])
        return model

    def outputs(self, inputs: Tensor) -> Tensor:
        """K × N × C outputs for inputs shared by all members, N × …, or for each member's own, K × N × …."""
        return self._forward(inputs, head=True)

    def features(self, inputs: Tensor) -> Tensor:
        """K × N × F features, the inputs of the head."""
        return self._forward(inputs, head=False)

    def loss(self) -> Tensor:
        """The mean loss of every member on all of its data, now."""
        with torch.no_grad():
            batch = self._feed.whole()
            out_KNC = forward(self._network, Rows(self.layout, self._w_KP), batch.inputs, head=True)
            each_KN = self._loss.value(out_KNC, batch.targets)
            share = batch.share.squeeze(2) if isinstance(batch.share, Tensor) else batch.share
            mean_K: Tensor = (each_KN * share).sum(1)
            return mean_K[self._place]

    def run(self, steps: int, *, measure: Measure | None = None, at: Iterable[int] = ()) -> Recorded:
        """Take `steps` more steps, and call `measure(parameters, step)` after those whose number is in `at`.

        Steps are counted over the ensemble's lifetime; step 0 is the state before the first. `measure` gets a copy of
        the parameters and returns a number per member for each name. Save the state between runs: an interrupted step
        may be half done. Parts of experiments are resumed within a run, unless it measures.
        """
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
            raise UsageError(f"steps = {steps!r}: give a whole number, 0 or more.")
        wanted = set(at)
        if (measure is None) != (not wanted):
            raise UsageError("measure and at go together: at=range(0, 601, 10) says when measure is called.")
        seen = Recorded(self.num_members)

        def look() -> None:
            if measure is not None and self.step in wanted:
                seen.add(self.step, measure(self.parameters(), self.step))

        if self.step == 0:
            look()
        begin, end = self.step, self.step + steps
        # What `measure` has seen is not in a checkpoint.
        own = self._checkpoint if measure is None else None
        if own is not None:
            own.resume(self, end=end)
        bar_of_steps = Bar(f"training {self.num_members} networks", total=steps, done=self.step - begin)
        saving = nullcontext(None) if own is None else own.saving(self, begin=begin, end=end)
        with torch.no_grad(), bar_of_steps as bar, saving as saver:
            while self.step < end:
                factor = 1.0 if self.schedule is None else float(self.schedule(self.step))
                for group in self._groups:
                    group.step(self.step, factor)
                self.step += 1
                look()
                bar.advance()
                if saver is not None:
                    saver.after_step()
        return seen

    def state_dict(self) -> dict[str, Any]:
        """What resuming bit for bit needs: the step, weights, momentum, and the plan they belong to."""
        velocity = {} if self._velocity_KP is None else self.layout.views(self._velocity_KP[self._place])
        memories = {str(i): each for i, group in enumerate(self._groups) if (each := group.memory) is not None}
        return {
            "step": self.step,
            "parameters": self.parameters(),
            "velocity": velocity,
            "memories": memories,
            "plan": self._plan.plain(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from the `state_dict` of an ensemble with the same plan; an error names any difference.

        Functions, a schedule or a loss of your own, are not compared.
        """
        self._plan.check(state["plan"])
        shapes = {name: (self.num_members, *shape) for name, shape in self.layout.shapes.items()}
        saved = {name: tuple(t.shape) for name, t in state["parameters"].items()}
        if saved != shapes:
            raise UsageError(f"the state is of parameters {saved}, this ensemble of {shapes}.")
        self._w_KP.copy_(self._rows(state["parameters"]))
        if self._velocity_KP is not None:
            self._velocity_KP.copy_(self._rows(state["velocity"]))
        for i, group in enumerate(self._groups):
            group.memory = state.get("memories", {}).get(str(i))
        self.step = int(state["step"])

    def _terms(self, plan: Plan) -> Terms | None:
        if not any(plan.label_smoothing) and not any(plan.logit_penalty):
            return None
        if any(plan.label_smoothing) and plan.loss == "squared":
            raise UsageError(unsmoothed(max(plan.label_smoothing)))
        if any(plan.label_smoothing) and self._loss.one_hot is None:
            raise UsageError("label_smoothing is for the losses by name: a function of yours may smooth by itself.")
        smoothing, penalty = (
            plan.column(name, self.layout)[:, :, None] for name in ("label_smoothing", "logit_penalty")
        )
        return Terms(smoothing, penalty)

    def _rows(self, views: Views) -> Tensor:
        flat_KP = torch.cat([views[name].detach().flatten(1) for name in self.layout.shapes], dim=1)
        return flat_KP.to(self._w_KP)[self._order]

    def _forward(self, inputs: Tensor, *, head: bool) -> Tensor:
        if tuple(inputs.shape[1:]) == self._shape:
            x_N = self._prepare(inputs)
            x_KN = x_N.expand(self.num_members, *x_N.shape)
        elif tuple(inputs.shape[2:]) == self._shape and len(inputs) == self.num_members:
            x_N = self._prepare(inputs.flatten(0, 1))
            x_KN = x_N.view(*inputs.shape[:2], *x_N.shape[1:])[self._order]
        else:
            each = " × ".join(map(str, self._shape))
            raise UsageError(
                f"inputs are {' × '.join(map(str, inputs.shape))}: give N × {each} for all members, or "
                f"{self.num_members} × N × {each} with a set for each."
            )
        with torch.no_grad():
            return forward(self._network, Rows(self.layout, self._w_KP), x_KN, head=head)[self._place]

    def _prepare(self, inputs_N: Tensor) -> Tensor:
        return self._network.prepare(scale_pixels(inputs_N).to(self.layout.device, self.layout.dtype))

    def _num_outputs(self, x_N: Tensor) -> int:
        with torch.no_grad():
            return forward(self._network, Rows(self.layout, self._w_KP[:1]), x_N[None, :1], head=True).shape[2]

    def _head_shape(self) -> tuple[int, ...] | None:
        head = self._network.head
        return tuple(self.layout.shapes[head.weight]) if isinstance(head, Linear) else None
