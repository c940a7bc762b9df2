"""Low priority: work in the background that leaves the cores to everything else."""

import os
from contextlib import suppress
from pathlib import Path

LOWEST = 19
AUTOGROUP = Path("/proc/self/autogroup")


def lower_priority() -> None:
    """Give this process, and the processes that it starts from now on, the lowest priority.

    Linux divides the cores among sessions first, and a nice value counts only within a session (autogroups). If this
    process leads a session of its own, as under `setsid`, the priority of the session is lowered too; that of a
    terminal is left alone, because it would slow down everything else that is started there.
    """
    if not hasattr(os, "nice"):
        return  # Windows
    os.nice(LOWEST)
    if os.getsid(0) == os.getpid() and AUTOGROUP.exists():
        with suppress(OSError):  # a container may show the file and refuse to have it written
            AUTOGROUP.write_text(str(LOWEST))
