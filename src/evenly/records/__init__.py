"""Run folders: the recipe, the environment and the results of each run; and queries over many runs.

    runs/<id>/    recipe.yaml         the resolved recipe
                  identity.json       digests of every setting and of the data
                  environment.json    a stamp for every session
                  metrics.jsonl       a line for every `log`
                  checkpoints/        the training loop's own
                  …                   artefacts, by name
                  failed, done        how it ended, if it did
                  lock                held while a process writes

Nothing here imports torch: any figure redraws on a laptop from a run folder.
"""

from evenly.records.query import runs as runs
from evenly.records.query import select as select
from evenly.records.query import table as table
from evenly.records.run import Run as Run
from evenly.records.run import State as State
