"""The recipe that a run was made with."""

from evenly.errors import DataError
from evenly.recipe import Recipe, from_record, identity_settings
from evenly.records import Run
from evenly.records.run import RECIPE
from evenly.typed.mappings import digest


def recorded_recipe(run: Run) -> Recipe:
    """The recipe in a run's folder; refused if its settings were changed since the run was made.

    Its numbers would be taken for those of the settings that the file shows now. Runs of evenly 0.1 are not checked:
    they stored no identity.
    """
    recipe = from_record(run.recipe)
    if run.identity is not None and run.identity["recipe"] != digest(identity_settings(recipe)):
        raise DataError(
            f"{run.path / RECIPE} has other settings than run {run.id} was made with: something changed it. Restore "
            "it, or move the folder away and train again."
        )
    return recipe
