"""`python -m soak.child WORDS`: evenly as a process of its own, with the switch and the small publisher of the soak.

`SOAK_KILL=17:after` ends it after its 17th writing call; `SOAK_SITE` is the address of the publisher.
"""

import os
import signal
import sys

from soak import publisher, switch
from soak.processes import run_main


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs are born without
    if address := os.environ.get("SOAK_SITE"):
        publisher.publish(address)
    if plan := os.environ.get("SOAK_KILL"):
        number, _, moment = plan.partition(":")
        switch.install(number=int(number), moment=moment)  # type: ignore[arg-type]
    return run_main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
