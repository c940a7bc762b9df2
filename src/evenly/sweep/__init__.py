"""Many runs at once: a plan is a graph of jobs, and an engine carries it out, on this machine, on Ray or on Slurm.

    plan.py           jobs and their dependencies: a graph without cycles
    where.py          `--on local:4`, `--on ray`, `--on slurm:gpu`, parsed and checked
    worker.py         how a process runs one job, on any engine
    local.py          worker processes on this machine
    on_ray.py         tasks of a Ray cluster
    ray_cluster.py    queries to the cluster: whether it answers, and what its nodes have and share
    run_archives.py   archives of runs, for machines that share no folder
    on_slurm.py       array jobs of a Slurm cluster, through submitit
    slurm_cluster.py  queries to the cluster: whether it answers, what its nodes have and share, and its queue
    status.py         the progress of a plan
    launch.py         `launch(plan, where)`, the entry point

The training loop does not depend on this package, and nothing here imports torch until a job does.
"""

from evenly.sweep.launch import check_available as check_available
from evenly.sweep.launch import launch as launch
from evenly.sweep.plan import Job as Job
from evenly.sweep.plan import Plan as Plan
from evenly.sweep.where import Where as Where
from evenly.sweep.where import parse as parse
