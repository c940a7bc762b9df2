"""What is compared: a recipe, methods that change it, and seeds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from evenly.data import Splits
from evenly.data.augment import Augmentation
from evenly.data.targeted import Targeted
from evenly.errors import UsageError
from evenly.recipe import Ascent, Model, Optimizer, Recipe, Resampling, Until
from evenly.training.argument_checks import check_seeds, require_recipe
from evenly.training.early import early_recipe
from evenly.training.last_layer import check_last_layer, on_last_layer
from evenly.training.methods import Method, parse_all

UNKNOWN = "0" * 12  # stands for the ID of an early run that is not trained yet


@dataclass(frozen=True)
class Design:
    """What is compared.

    Parameters
    ----------
    recipe
        Plain training; its seed is replaced by each of `seeds`.
    methods, seeds
        The names of methods (`evenly.training.methods`), and the seeds that all of them share.
    until, early_model, early_optimizer, early_ascent
        When the early run ends, and what stands in for the recipe's own there.
    factor, keep_suspects
        How often hard examples are shown where a method does not say, and whether those that look mislabelled are too.
    split
        Where the error is taken; by default `test`, or `validation` where there is no such split.
    """

    recipe: Recipe
    methods: Sequence[str] = ("plain", "sam", "useful", "sam+useful", "random", "steps")
    seeds: Sequence[int] = (0, 1, 2)
    until: Until = Until("gain")  # noqa: RUF009  # frozen
    factor: int = 2
    keep_suspects: bool = True
    early_model: Model | None = None
    early_optimizer: Optimizer | None = None
    early_ascent: Ascent | None = None
    split: str | None = None

    @property
    def parsed_methods(self) -> list[Method]:
        """The methods; names that cannot be meant are refused."""
        if isinstance(self.methods, str):
            raise UsageError(f"methods = {self.methods!r} is one text: give a list of names, such as ['plain', 'sam'].")
        if not self.methods or not self.seeds:
            raise UsageError("a comparison needs one method and one seed at least.")
        return parse_all(self.methods)

    @property
    def needs_early(self) -> bool:
        """Whether any method needs an early run."""
        return any(method.needs_early for method in self.parsed_methods)

    def plain(self, seed: int) -> Recipe:
        """The recipe that methods change, for one seed."""
        return replace(self.recipe, seed=seed)

    def early(self, seed: int) -> Recipe:
        """The recipe of the early run of one seed."""
        stand_ins = {"model": self.early_model, "optimizer": self.early_optimizer, "ascent": self.early_ascent}
        first = early_recipe(self.plain(seed), self.until, **stand_ins)  # type: ignore[arg-type]  # of several kinds
        if first.model != self.recipe.model and any(made.start == "early" for made in self._resamplings()):
            raise UsageError("resampling.start=early continues with the early network: leave the early model out.")
        return first

    @property
    def selections(self) -> list[dict[str, Any]]:
        """How methods choose examples by the early run, each way once: `method`, `among`, `factor` and `like`."""
        made: list[tuple[Any, ...]] = [
            (each.method, each.among, each.factor, each.like) for each in self._resamplings()
        ]
        for method in self.parsed_methods:
            if method.has("steps") and (cure := self.copied(method)) is not None:
                like = None if cure.method == "useful" else cure.method
                made.append(("random", cure.among, 1, like))  # only the number of copies matters to it
        return [dict(zip(("method", "among", "factor", "like"), each, strict=True)) for each in dict.fromkeys(made)]

    def copied(self, method: Method) -> Resampling | None:
        """The resampling whose copies a method shows, or whose steps it takes."""
        return method.copied(self.plain(0), factor=self.factor, keep_suspects=self.keep_suspects)

    @property
    def plain_continues(self) -> bool:
        """Whether plain training continues from the early run, which is its beginning."""
        alike = (self.early_model, self.early_optimizer, self.early_ascent) == (None, None, None)
        return self.needs_early and alike and any(method.name == "plain" for method in self.parsed_methods)

    def _resamplings(self) -> list[Resampling]:
        return [recipe.resampling for recipe in self._recipes() if recipe.resampling.method != "none"]

    def _recipes(self) -> list[Recipe]:
        plain, factor = self.plain(0), self.factor
        return [each.recipe(plain, early=UNKNOWN, share=0.4, factor=factor) for each in self.parsed_methods]

    @property
    def networks(self) -> list[Recipe]:
        """What is trained, plain training first; recipes that differ only in examples and their number count once."""
        plain = replace(self.plain(self.seeds[0]), resampling=Resampling())
        early = [self.early(self.seeds[0])] if self.needs_early else []
        found = [plain]
        for recipe in (*early, *self._recipes()):
            same = {name: getattr(plain, name) for name in ("seed", "epochs", "schedule", "until", "resampling")}
            if (alike := replace(recipe, **same)) not in found:
                found.append(alike)
        return found

    def check(self) -> None:
        """Raise, before anything is trained, for methods whose recipes cannot be made."""
        require_recipe(self.recipe)
        check_seeds(self.seeds)
        if not isinstance(self.until, Until):
            raise UsageError(f"until = {self.until!r:.60}: give evenly.recipe.Until('gain'), or Until('epoch', 5).")
        methods, recipes = self.parsed_methods, self._recipes()
        # Of `steps`, the recipe is known only after the early run: it differs with what is copied.
        trained = [(recipe, self.copied(method)) for method, recipe in zip(methods, recipes, strict=True)]
        for place, method in enumerate(methods):
            if (first := trained.index(trained[place])) < place:
                raise UsageError(
                    f"{methods[first].name} and {method.name} are the same training: leave one of them out."
                )
        if self.needs_early:
            self.early(self.seeds[0])

    def remarks_on(self, splits: Splits) -> list[str]:
        """What should be known before these data are trained on, each sentence once."""
        return list(dict.fromkeys(said for recipe in self._recipes() for said in on_last_layer(recipe, splits)))

    def check_on(self, splits: Splits, *, split: str) -> None:
        """Raise, before anything is trained, for what these data cannot take: augmentations, a split for DFR.

        `split` is where the error is taken.
        """
        train = splits.train
        one, index = train.gather([0]), torch.zeros(1, dtype=torch.int64)
        for recipe in self._recipes():
            check_last_layer(recipe, splits, judged_on=split)
            for_all = Augmentation.parse(recipe.augment, data=train)
            for_all(one, seed=0, epoch=0, index=index)
            if recipe.resampling.augment:
                for_some = Augmentation.parse(recipe.resampling.augment, data=train)
                Targeted(for_some, torch.ones(len(train), dtype=torch.bool)).check(train, for_all)
                for_some(one, seed=0, epoch=0, index=index)
