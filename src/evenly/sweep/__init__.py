"""Many runs at once: a plan is a graph of jobs, and an executor carries it out, on this machine, on Ray or on Slurm.

    plan.py           jobs and what each needs: a graph without cycles
    where.py          `--on local:4`, `--on ray`, `--on slurm:gpu`, read and checked
    worker.py         what a process does with one job, wherever it runs
    local.py          processes of this machine
    on_ray.py         tasks of a Ray cluster
    ray_cluster.py    the cluster itself: whether it answers, and what its nodes have and see
    parcels.py        runs that travel where no folder is shared
    on_slurm.py       array jobs of a Slurm cluster, through submitit
    slurm_cluster.py  the cluster itself: whether it answers, what its nodes have and see, and its queue
    status.py         what is known of a plan while it is carried out
    launch.py         `launch(plan, where)`: the one way in

The training loop knows nothing of this, and nothing here imports torch until a job does.
"""

from evenly.sweep.launch import check_available as check_available
from evenly.sweep.launch import launch as launch
from evenly.sweep.plan import Job as Job
from evenly.sweep.plan import Plan as Plan
from evenly.sweep.where import Where as Where
from evenly.sweep.where import parse as parse
