"""Kills, hostile files and floods: `python -m soak` does to evenly what a bad week does, and counts what broke.

processes   run a command of evenly in a fork of this process, or as a process of its own, within limits
switch      end a process by SIGKILL before, in the middle of or after its n-th writing call
small       the small data, runs and ledger that everything here works on
scenarios   the commands that are killed, and what is compared afterwards
kills       kill, repeat, compare
mutations   damage bytes; `structures` and `containers` damage what the bytes mean
readers     which commands read which file
fuzz        damage, read, judge; `cases` keeps the inputs that broke something
flood       bad clients of the live view
tally       the table at the end, and its place in docs/reliability.md
"""

import os

# Set before numpy is imported: OpenBLAS starts a thread per core, and a process with threads cannot fork safely.
ALIKE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "COLUMNS": "100"}
os.environ.update(ALIKE)
