"""The recipe of a run: frozen and typed, read from YAML, changed from the command line, and named by a hash.

The defaults are those of the USEFUL paper (Nguyen et al., 2024), on data and a model small enough to try; a radius is
the default of the rule's authors (`evenly.rules`).
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evenly import consent
from evenly.atomic import write_text
from evenly.errors import UsageError
from evenly.rules import RULES, rule_name
from evenly.typed import Settings, mappings, setting, yaml_text
from evenly.typed import from_mapping as from_mapping
from evenly.typed import identity_settings as identity_settings
from evenly.typed import settings as settings
from evenly.typed import to_mapping as to_mapping


@dataclass(frozen=True)
class Data(Settings):
    """Which examples."""

    name: str = setting("digits", "A data set that `evenly data list` names, or the path of your own.")
    options: Mapping[str, Any] = setting({}, "Options of this data set, such as `beta_hard` of `patches`.")
    validation: float = setting(0.0, "Share of the training examples held out for validation.", least=0, below=1)
    seed: int | None = setting(None, "The seed of toy data and pairings; null takes the recipe's.", least=0)


@dataclass(frozen=True)
class Model(Settings):
    """Which network."""

    name: str = setting("mlp", "The architecture.")
    options: Mapping[str, Any] = setting({}, "Options of this architecture, such as `width`.")
    weights: str | None = setting(None, "A file of weights to start from; null draws them from the seed.")


@dataclass(frozen=True)
class Optimizer(Settings):
    """How a gradient becomes a step."""

    name: str = setting("sgd", "Any optimizer of torch.optim.")
    lr: float = setting(0.1, "Learning rate.", above=0)
    momentum: float = setting(0.9, "Momentum.", least=0, below=1)
    nesterov: bool = setting(False, "Whether the momentum is Nesterov's.")
    weight_decay: float = setting(5e-4, "Weight decay.", least=0)
    decay: Literal["all", "weights"] = setting("all", "Whether biases and normalisation layers decay too.")
    options: Mapping[str, Any] = setting({}, "Options of this optimizer, such as `betas` of AdamW.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nesterov and self.momentum == 0:
            raise UsageError(
                "optimizer.nesterov: it needs optimizer.momentum above 0, not 0.0. For example: optimizer.momentum=0.9"
            )


#: The radius in the recipes of plain runs. Nothing reads it, but it has always been part of their identity.
_UNUSED = 0.1
_MOST_EPOCHS = 10**9  # more steps than that have no end, and no floating-point number


@dataclass(frozen=True)
class Ascent(Settings):
    """Where the gradient is taken: at the weights, or at a worse point near them (the SAM family)."""

    rule: str = setting("none", "The rule of the SAM family that displaces the weights; `none` is ordinary training.")
    rho: float | None = setting(
        None, "The radius: how far it displaces them; null is the rule's own default.", least=0, most=1e6
    )
    options: Mapping[str, Any] = setting({}, "Options of this rule.")
    schedule: Literal["constant", "linear", "cosine", "lr"] = setting(
        "constant",
        "How rho goes to rho_end over training; `lr` follows the learning rate, as GSAM does.",
        absent="constant",
    )
    rho_end: float = setting(0.0, "The final rho, unless its schedule is constant.", least=0, most=1e6, absent=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule == "none":
            object.__setattr__(self, "rho", _UNUSED)
            return
        try:
            name = rule_name(self.rule)
        except UsageError as error:
            raise UsageError(f"ascent.rule: {error}") from None
        object.__setattr__(self, "rule", name)
        if self.rho is None:
            object.__setattr__(self, "rho", RULES[name].rho)
        if self.rho_end and self.schedule == "constant":
            raise UsageError(f"ascent.rho_end={self.rho_end:g} needs a schedule. For example: ascent.schedule=linear")

    @property
    def radius(self) -> float:
        """ρ, and 0 for ordinary training.

        >>> Ascent().radius, Ascent("sam").radius, Ascent("asam", 1.0).radius
        (0.0, 0.05, 1.0)
        """
        return 0.0 if self.rule == "none" or self.rho is None else self.rho


@dataclass(frozen=True)
class Schedule(Settings):
    """How the learning rate changes over training."""

    kind: Literal["constant", "step", "cosine"] = setting("step", "The shape of the learning-rate schedule.")
    milestones: tuple[float, ...] = setting(
        (0.5, 0.75), "Shares of training after which a step schedule multiplies by `factor`.", above=0, below=1
    )
    factor: float = setting(0.1, "The factor of a step schedule.", above=0, most=1)
    warmup_epochs: float = setting(0.0, "Epochs of linear warm-up before the schedule.", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(a >= b for a, b in zip(self.milestones, self.milestones[1:], strict=False)):
            raise UsageError(
                f"schedule.milestones: expected a rising list, not {list(self.milestones)}. "
                f"For example: schedule.milestones={sorted(set(self.milestones))}"
            )


@dataclass(frozen=True)
class Until(Settings):
    """When training stops early and saves its outputs on the training set."""

    rule: Literal["end", "gain", "epoch", "fraction"] = setting(
        "end", "The last epoch; or, early: where the gain in training error shrinks, an epoch, a part of all epochs."
    )
    value: float = setting(0.0, "Which epoch, or which part of all epochs.", least=0)


@dataclass(frozen=True)
class Resampling(Settings):
    """Which training examples are shown more often, or count for more."""

    method: Literal["none", "useful", "random", "upweight", "quantile", "misclassified", "reweight", "balance"] = (
        setting("none", "How the examples shown more often are chosen: `useful` takes each class's hard cluster.")
    )
    factor: int = setting(
        2, "How often a chosen example is shown in an epoch, or what its loss is multiplied by.", least=1
    )
    early: str | None = setting(None, "The run whose outputs decide, trained until an early epoch.")
    keep_suspects: bool = setting(True, "Whether examples that look mislabelled are shown more often too.")
    augment: tuple[str, ...] = setting(
        (), "Augmentations for some examples only, after those for all: [noise:0.2].", absent=()
    )
    augment_target: Literal["hard", "all", "random"] = setting(
        "hard", "Which examples these are for: the chosen ones, all, or as many random ones (a control).", absent="hard"
    )
    among: Literal["all", "right"] = setting(
        "all",
        "Whether clusters are made of all examples, or of those that the early network predicts correctly.",
        absent="all",
    )
    start: Literal["scratch", "early"] = setting(
        "scratch", "Whether training starts afresh or from the early run's weights.", absent="scratch"
    )
    like: Literal["misclassified", "quantile", "balance"] | None = setting(
        None,
        "The method whose copies method=random makes of random examples, as its control; null is useful.",
        absent=None,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.among == "right" and (chosen_by := self.copies) in ("misclassified", "quantile"):
            raise UsageError(
                f"resampling.among=right is for clusters, and method={chosen_by} makes none. Use among=all."
            )
        if self.like is not None and self.method not in ("none", "random"):
            raise UsageError(
                f"resampling.like={self.like} is for random copies, and method={self.method} chooses its own. "
                "Use method=random."
            )
        if (self.method == "none") != (self.early is None):
            raise UsageError(
                "resampling.method and resampling.early go together: the outputs of an early run decide which "
                "examples are chosen. `evenly useful` makes both."
            )

    @property
    def copies(self) -> str:
        """The method that says how many examples are copied how often: for a random choice, the one it controls.

        >>> Resampling("useful", early="c0ffee").copies, Resampling("random", early="c0ffee", like="balance").copies
        ('useful', 'balance')
        """
        return (self.like or "useful") if self.method == "random" else self.method


@dataclass(frozen=True)
class Recipe(Settings):
    """A run, described.

    >>> recipe = Recipe(data=Data("patches", {"beta_hard": 0.4}), ascent=Ascent("sam"), seed=1)
    >>> recipe.optimizer.lr, recipe.ascent.rho, recipe.epochs
    (0.1, 0.05, 200)
    """

    data: Data = Data()
    augment: tuple[str, ...] = setting((), "Augmentations in order, such as [pad-crop:4, mirror].")
    model: Model = Model()
    optimizer: Optimizer = Optimizer()
    ascent: Ascent = Ascent()
    schedule: Schedule = Schedule()
    resampling: Resampling = Resampling()
    until: Until = Until()
    epochs: int = setting(200, "Passes over the training examples.", least=1)
    batch_size: int = setting(128, "Examples in a step.", least=1)
    drop_last: bool = setting(False, "Whether a smaller last batch is dropped.")
    seed: int = setting(0, "The seed of all random numbers.", least=0)
    precision: Literal["fp32", "bf16", "fp16"] = setting("fp32", "Number format of the forward and backward passes.")
    accumulate: int = setting(1, "Parts in which a batch is computed, to save memory.", least=1, absent=1)
    deterministic: bool = setting(False, "Whether a GPU must give the same bits every time.", absent=False)
    label_smoothing: float = setting(0.0, "Share of the target spread over all classes.", least=0, below=1)
    clip_norm: float | None = setting(None, "Largest norm of a gradient; null leaves it as it is.", above=0)
    loss: Literal["auto", "cross-entropy", "logistic", "squared"] = setting(
        "auto", "The loss; `auto` is cross-entropy, or logistic for a model with one output."
    )
    evaluate_every: int = setting(1, "Epochs from one evaluation of all splits to the next.", least=1)
    record_examples: bool = setting(False, "Whether to record every training example's loss at each evaluation.")
    keep_epochs: tuple[int, ...] = setting((), "Epochs after which the weights are kept for good.", least=1)
    channels_last: bool = setting(False, "Whether images lie in memory with their channels last.")
    compile: bool = setting(False, "Whether the model is compiled; it takes a minute and pays off in long runs.")
    sharded: bool = setting(False, "Whether many devices share the parameters (FSDP2) rather than copy them (DDP).")
    logit_penalty: float = setting(
        0.0, "λ of the penalty λ/2·‖outputs‖² on every example (spectral decoupling).", least=0, absent=0.0
    )
    last_layer: str | None = setting(
        None,
        "The held-out split to which the last layer is fitted at the end, its groups balanced (DFR); null leaves it.",
        absent=None,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epochs > _MOST_EPOCHS:
            raise UsageError(f"epochs: expected at most {_MOST_EPOCHS:,}, not {self.epochs:.3g}. 200 are usual.")
        if late := [epoch for epoch in self.keep_epochs if epoch > self.epochs]:
            raise UsageError(f"keep_epochs: the run has {self.epochs} epochs, and {late[0]} is beyond them.")
        if self.last_layer in ("train", "test"):
            raise UsageError(
                f"last_layer={self.last_layer}: expected a split that the network was not trained on and is not judged "
                "by. For example: last_layer=validation with data.validation=0.2"
            )
        if self.label_smoothing and self.loss == "squared":
            raise UsageError(
                f"label_smoothing={self.label_smoothing:g} has no meaning for loss=squared, whose target is a number. "
                "Set it to 0, or take another loss."
            )
        if self.schedule.warmup_epochs >= self.epochs:
            raise UsageError(
                f"schedule.warmup_epochs: expected fewer than the {self.epochs} epochs of the run, "
                f"not {self.schedule.warmup_epochs}. For example: schedule.warmup_epochs={self.epochs // 10}"
            )


def load(path: str | os.PathLike[str], *, trust_code: bool = False) -> Recipe:
    """The recipe in a YAML file; an error names the file, and its line where YAML itself is broken.

    A recipe whose model is code (`module:function`) is refused unless the user has agreed to it on this machine
    (`evenly.consent`), or `trust_code` is set.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "recipe.yaml"
    >>> dump(Recipe(epochs=3), file, defaults=False)
    >>> file.read_text(), load(file) == Recipe(epochs=3)
    ('epochs: 3\\n', True)
    """
    mapping = yaml_text.read(path)
    try:
        recipe = from_mapping(Recipe, mapping)
        _refuse_unused_radius(recipe, mapping)
    except UsageError as error:
        raise UsageError(f"{os.fspath(path)}: {error}") from None
    if not trust_code:
        remedy = f"load it by evenly.recipe.load({os.fspath(path)!r}, trust_code=True)"
        consent.require(recipe.model.name, recipe.model.options, source=path, remedy=remedy)
    return recipe


def from_record(mapping: Mapping[str, Any]) -> Recipe:
    """The recipe stored in a run's folder by this version or an older one, with every setting written out.

    >>> from_record(to_mapping(Recipe(epochs=3))) == Recipe(epochs=3)
    True
    """
    # Earlier versions recorded label smoothing that the squared loss ignored: it is part of the identity of their runs.
    squared = isinstance(mapping, Mapping) and mapping.get("loss") == "squared"
    recipe = from_mapping(Recipe, {**mapping, "loss": "auto"} if squared else mapping, recorded=True)
    if squared:
        object.__setattr__(recipe, "loss", "squared")
    return recipe


def dump(recipe: Recipe, path: str | os.PathLike[str], *, defaults: bool = True) -> None:
    """Write the recipe as YAML, whole or not at all; with `defaults`, every setting is spelled out."""
    write_text(path, yaml_text.render(to_mapping(recipe, defaults=defaults)))


def override(recipe: Recipe, changes: Iterable[str]) -> Recipe:
    """The recipe with `--set` changes, each `path=value` with the value in YAML; a later change of a path wins.

    >>> changed = override(Recipe(), ["optimizer.lr=5e-2", "data.options.beta_d=0.4", "augment=[pad-crop, mirror]"])
    >>> changed.optimizer.lr, changed.data.options["beta_d"], changed.augment
    (0.05, 0.4, ('pad-crop', 'mirror'))
    """
    mapping = to_mapping(recipe)
    set_paths = set()
    for change in changes:
        path, equals, text = (part.strip() for part in change.partition("="))
        if not (path and equals and text):
            raise UsageError(f"--set {change!r}: expected path=value. For example: --set optimizer.lr=0.05")
        _put(mapping, path, yaml_text.parse(text, source=f"--set {path}"))
        set_paths.add(path)
    # A radius belongs to its rule: a new rule brings its own default.
    other_rule = mapping["ascent"]["rule"] != recipe.ascent.rule
    if other_rule and "ascent.rho" not in set_paths:
        mapping["ascent"]["rho"] = None
    changed = from_mapping(Recipe, mapping)
    _refuse_unused_radius(changed, mapping)
    return changed


def _refuse_unused_radius(recipe: Recipe, given: Mapping[str, Any]) -> None:
    rho = given.get("ascent", {}).get("rho")
    if recipe.ascent.rule == "none" and rho not in (None, _UNUSED):
        raise UsageError(
            f"ascent.rho={rho} is the radius of SAM and its family, and ascent.rule is none. Set ascent.rule=sam too."
        )


def digest(recipe: Recipe) -> str:
    """Twelve hex digits that name the recipe: equal recipes have equal digests, on any machine, in any version.

    Every setting counts, even at its default, so changing a default changes the digest. A setting added in a later
    version does not count at the value that reproduces the earlier behaviour (see `typed.identity_settings`).

    >>> digest(Recipe(epochs=3)) == digest(from_mapping(Recipe, {"seed": 0, "epochs": 3.0}))
    True
    """
    return mappings.digest(identity_settings(recipe), digits=12)


def _put(mapping: dict[str, Any], path: str, value: Any) -> None:
    inside = [row.path for row in settings(Recipe) if row.path.startswith(f"{path}.")]
    if inside:
        raise UsageError(f"--set {path}: this is a group of settings. Set one of them: {', '.join(inside)}.")
    *groups, leaf = path.split(".")
    inner: Any = mapping
    for depth, group in enumerate(groups, 1):
        inner = inner.setdefault(group, {})
        if not isinstance(inner, dict):
            single = ".".join(groups[:depth])
            raise UsageError(f"--set {path}: {single!r} is one setting, with none inside. Use --set {single}=…")
    inner[leaf] = value
