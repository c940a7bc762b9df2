"""A few forked workers that hand back what they find, one thing at a time."""

import os
import signal
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, TypeVar

T = TypeVar("T")


def crew(workers: int, work: Callable[[int], Iterator[T]]) -> Iterator[T]:
    """Everything that `work(0)`, …, `work(workers − 1)` yield, each in a fork, in the order in which it comes."""
    open_: dict[Connection, int] = {}
    for number in range(workers):
        reader, writer = Pipe(duplex=False)
        worker = os.fork()
        if worker == 0:
            reader.close()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _labour(work, number, writer)
        writer.close()
        open_[reader] = worker
    try:
        while open_:
            for ready in wait(list(open_)):
                try:
                    kind, value = ready.recv()  # type: ignore[union-attr]
                except EOFError:
                    os.waitpid(open_.pop(ready), 0)  # type: ignore[call-overload]
                    continue
                if kind == "error":
                    raise RuntimeError(f"a worker of the soak itself failed:\n{value}")
                yield value
    finally:
        for worker in open_.values():
            os.kill(worker, signal.SIGTERM)
            os.waitpid(worker, 0)


def _labour(work: Callable[[int], Iterator[Any]], number: int, writer: Connection) -> None:
    try:
        for value in work(number):
            writer.send(("value", value))
    except KeyboardInterrupt:
        pass
    except BaseException:
        writer.send(("error", traceback.format_exc()))
    finally:
        writer.close()
        os._exit(0)
