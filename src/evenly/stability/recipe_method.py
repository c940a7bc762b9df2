"""The linear model of the optimizer that a recipe trains with: exact, approximate, or refused by name."""

from dataclasses import dataclass, field
from typing import Any, Literal

from evenly.errors import UsageError
from evenly.recipe import Recipe
from evenly.rules import FORMER_NAMES
from evenly.stability.method import Method
from evenly.stability.problem import check_ratio

JudgedOptimizer = Literal["sgd", "adamw"]
JudgedAscent = Literal["none", "sam"]
ADAM_BETAS, ADAM_EPS = (0.9, 0.999), 1e-8  # torch's defaults
# SAM's options at their neutral values; any other value changes the ascent.
PLAIN_SAM: dict[str, Any] = {
    "every": 1, "fraction": 1.0, "where": None, "weight_decay": 0.0, "adaptive": False, "eta": None, "adapt": None
}  # fmt: skip


@dataclass(frozen=True)
class RunMethod:
    """The linear model of a run's method.

    `rho` is set where ρ/α needs α, the mean norm of a batch's gradient, still to be measured; `adam_eps` where
    gradients are divided by √v + eps with v frozen. Both at once are refused. SAM climbs along the gradient as it is
    and Adam descends along the divided one, D = √v + eps: in the weights where Adam is SGD the map is H̃ + (ρ/α)H̃DH̃,
    and not H̃ + (ρ/α)H̃².
    """

    name: str
    settings: Method
    batch: int
    rho: float | None = None
    adam_eps: float | None = None
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.adam_eps is not None and (self.rho or self.settings.get("rho_over_alpha")):
            raise UsageError(
                f"{self.name!r} has no threshold: SAM climbs along the gradient as it is, Adam descends along the "
                "gradient divided by √v. Give --ascent none to judge Adam alone, or --optimizer sgd to judge SAM with "
                "SGD."
            )


def method_of(
    recipe: Recipe,
    *,
    optimizer: JudgedOptimizer | None = None,
    ascent: JudgedAscent | None = None,
    ratio: float | None = None,
) -> RunMethod:
    """The linear model of a recipe's optimizer and ascent; a method without one is refused, with the nearest one.

    `optimizer` and `ascent` replace the recipe's, and `ratio` is SAM's ρ/α in place of the one to be measured.

    >>> method_of(Recipe()).name
    'SGD, momentum 0.9, weight decay 0.0005'
    """
    name, settings, adam_eps, notes = _optimizer(recipe, optimizer)
    settings["sampling"] = "without"
    rho, ascent_name, ascent_notes = _ascent(recipe, settings, ascent, ratio)
    notes += ascent_notes
    if recipe.clip_norm is not None:
        notes.append(f"Gradients were clipped at {recipe.clip_norm:g}; the model clips none.")
    if recipe.resampling.method != "none":
        notes.append("The run showed chosen examples more often; here every example counts once.")
    if recipe.augment and any(not step.startswith("normalise") for step in recipe.augment):
        notes.append("The run augmented its examples; here they are taken as they are in evaluation.")
    return RunMethod(f"{ascent_name}{name}", settings, recipe.batch_size, rho, adam_eps, tuple(notes))


def _optimizer(recipe: Recipe, judged: JudgedOptimizer | None) -> tuple[str, Method, float | None, list[str]]:
    chosen, given = recipe.optimizer, recipe.optimizer.name.lower()
    kind = judged or given
    notes = [] if kind == given else [f"The run used {chosen.name}; it is judged as {kind}."]
    decay = chosen.weight_decay
    if decay and chosen.decay == "weights":
        notes.append("Biases and normalisation layers did not decay in the run; in the model every weight does.")
    if kind == "sgd":
        momentum = chosen.momentum if given == "sgd" else 0.0
        settings: Method = {"momentum": momentum, "nesterov": chosen.nesterov and given == "sgd", "weight_decay": decay}
        words = ["SGD"]
        if momentum:
            settings["dampening"] = float(chosen.options.get("dampening", 0.0)) if given == "sgd" else 0.0
            words.append(f"{'Nesterov ' if settings['nesterov'] else ''}momentum {momentum:g}")
        return ", ".join([*words, *_decay_words(decay, "")]), settings, None, notes
    if kind in ("adamw", "adam"):
        if kind == "adam" and decay:
            notes.append(f"Adam's weight decay of {decay:g} in the loss is left out of the model.")
            decay = 0.0
        options: dict[str, Any] = dict(chosen.options) if given == kind else {}
        first = float(options.get("betas", ADAM_BETAS)[0])
        settings = {"momentum": first, "dampening": first, "weight_decay": decay, "decoupled": True}
        notes.append(
            "An approximation: gradients are divided by √v + eps with v, the mean square of a batch's gradient at "
            "these weights, held fixed. Adam lets v follow the gradients."
        )
        title = "AdamW" if kind == "adamw" else "Adam"
        words = [title, f"beta1 {first:g}", "second moments frozen", *_decay_words(decay, "decoupled ")]
        return ", ".join(words), settings, float(options.get("eps", ADAM_EPS)), notes
    nearest = "adamw" if any(word in given for word in ("ada", "rms", "lion", "prop")) else "sgd"
    raise UsageError(
        f"the run used {chosen.name}, for which there is no threshold: SGD (with momentum, Nesterov's momentum, weight "
        f"decay) has an exact one, AdamW and Adam an approximate one. The nearest is {nearest}: give --optimizer "
        f"{nearest}."
    )


def _ascent(
    recipe: Recipe, settings: Method, judged: JudgedAscent | None, ratio: float | None
) -> tuple[float | None, str, list[str]]:
    """Add the ascent to the settings; return the ρ still to be divided by α, the ascent's name, and notes."""
    chosen = recipe.ascent
    rule = FORMER_NAMES.get(judged or chosen.rule, judged or chosen.rule)
    notes = [] if rule == chosen.rule else [f"The run's ascent was {chosen.rule!r}; it is judged as {rule!r}."]
    if ratio is not None:
        check_ratio(ratio)
        if rule not in ("sam", "usam"):
            raise UsageError(
                f"--ratio {ratio:g} is ρ/α of SAM, but the run is judged with the ascent {rule!r}. Leave --ratio out, "
                "or give --ascent sam too, to judge the run as if trained with SAM."
            )
    if judged == "sam" and chosen.radius == 0 and ratio is None:
        raise UsageError("--ascent sam: the run has no ρ to judge it by. Give ρ/α too, such as --ratio 0.1.")
    if rule == "none" or (chosen.radius == 0 and ratio is None):
        return None, "", notes
    if rule == "random":
        notes.append("A random perturbation has the threshold of SGD; below it the weights hover and do not converge.")
        return None, f"random perturbation {chosen.radius:g} with ", notes
    if rule not in ("sam", "usam"):
        raise UsageError(
            f"the run used the rule {rule!r}, for which there is no threshold; 'sam', 'usam' and 'random' have "
            "one. The nearest is sam: give --ascent sam."
        )
    options = chosen.options if chosen.rule == rule else {}
    for name, value in options.items():
        if name in ("m", "same_dropout") or (name in PLAIN_SAM and value == PLAIN_SAM[name]):
            continue
        if judged is None:
            raise UsageError(
                f"the run climbed with {name}={value}, for which there is no threshold. The nearest climbs at every "
                "step, with all weights and on the whole batch: give --ascent sam."
            )
        notes.append(f"The run had {name}={value}; the model climbs at every step, with all weights, on the batch.")
    if chosen.schedule != "constant" and ratio is None:
        notes.append(
            f"The run's ρ began with {chosen.radius:g} and went to {chosen.rho_end:g} ({chosen.schedule}); it is "
            f"judged at {chosen.radius:g}: give --ratio for another ρ/α."
        )
    settings["ascent"] = "batch"
    m = options.get("m")
    m = None if m == "all" else m
    if m is not None:
        settings["m"] = int(m)
    radius = f"ρ={chosen.radius:g}" if ratio is None else f"ρ/α={ratio:g}"
    words = f"SAM {radius} on {'its own batch' if m is None else f'groups of {m}'} with "
    if ratio is not None:
        settings["rho_over_alpha"] = ratio
        return None, words, notes
    if rule == "usam":
        settings["rho_over_alpha"] = chosen.radius
        return None, f"unnormalised {words}", notes
    notes.append("SAM's step ρg/‖g‖ is taken as (ρ/α)g with α the mean norm of a batch's gradient at these weights.")
    return chosen.radius, words, notes


def _decay_words(decay: float, kind: str) -> list[str]:
    return [f"{kind}weight decay {decay:g}"] if decay else []
