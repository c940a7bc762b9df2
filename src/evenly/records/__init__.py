"""Run folders: what was asked, where it ran, what came out; and questions over many of them.

    runs/<id>/    recipe.yaml         the resolved recipe
                  identity.json       what the run is of: digests of every setting and of the data
                  environment.json    a stamp for every sitting
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
