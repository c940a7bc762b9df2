"""The command line: a function for each verb, each in a small file of its own.

Results go to stdout, messages and progress to stderr. Exit codes: 0 ok, 1 bug, 2 usage, 3 data, 4 environment or
missing extra, 5 ran but the claim did not hold, 75 stopped but resumable, 130 Ctrl-C.

Nothing here imports torch before a verb runs, so that `evenly --help` answers at once.
"""

import errno
import logging
import os
import shlex
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from evenly import __version__
from evenly.cli.parser import Parser
from evenly.cli.termination import ending_plainly
from evenly.consent import trusting
from evenly.errors import EvenlyError, SetupError
from evenly.progress import printable, tell, wrap_text

# Errors of the system that are about a path, and how much of it is shown.
_PATHS = {errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ELOOP, errno.EROFS}
_SHOWN = 200

EXAMPLES = """
  evenly demo                                 see it work on embedded data
  evenly useful photos/ --model resnet18      the whole method on your own images
  evenly compare photos/ --model convnet      which method helps on them
  evenly train digits --optimizer sam         train, resumable, in a run folder
  evenly runs                                 list all runs
  evenly doctor                               what is installed, which data sets are found
  evenly data list                            every data set, and whether it is here
  evenly data show digits --out sheet.png     look at one
"""
# Each verb is in the module of its name, which is imported when the verb is used.
VERBS = {
    "demo": "see the bias and its cure on embedded data",
    "compare": "which method helps on your data, and whether the gain is real",
    "advise": "what to try first, from two short early runs and the atlas of cures",
    "useful": "train with USEFUL and its controls, with paired seeds",
    "separate": "find the examples that a network does not learn early",
    "export": "export a trained network or a resampled training set",
    "predict": "classify new images with a trained run",
    "train": "train one recipe, or resume it",
    "runs": "list runs and their results",
    "measure": "measure sharpness, features and more of a run",
    "report": "show runs and comparisons as one page, or live",
    "stability": "learning rates at which SGD and SAM are stable",
    "reproduce": "any figure or table of the papers, with a verdict",
    "cite": "BibTeX of the papers",
    "data": "list, look at, fetch and verify data sets",
    "doctor": "what is installed, which data sets are found, how to get the rest",
}


def parser(verb: str | None = None) -> Parser:
    """The command line, with the arguments of `verb`; the other verbs are only listed."""
    top = Parser(prog="evenly", description="See and cure simplicity bias.", examples=EXAMPLES)
    top.add_argument("--version", action="version", version=f"evenly {__version__}")
    verbs = top.add_subparsers(metavar="VERB", required=True, title="verbs")
    for name, purpose in VERBS.items():
        inner = verbs.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        if name == verb:
            import_module(f"evenly.cli.{name}").fill(inner)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _speak_plainly()
    code = 0
    try:
        with ending_plainly():
            code = _run(list(sys.argv[1:] if argv is None else argv))
        print(end="", flush=True)  # here, where it can still be reported that the output cannot be written
    except OSError as error:
        reason = _why_stdout_fails(error)
        if reason is None and error.errno in _PATHS and error.filename is not None:
            name = printable(os.fsdecode(error.filename))
            shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
            print(wrap_text(f"evenly: {shown}: {error.strerror}. Give another path."), file=sys.stderr)
            return SetupError.exit_code
        if reason is None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would complain at exit
        if not isinstance(reason, BrokenPipeError):  # that the reader has gone (`evenly runs | head`) is no error
            print(wrap_text(f"evenly: cannot write the output: {reason.strerror}"), file=sys.stderr)
            return SetupError.exit_code
    return code


def _run(words: list[str]) -> int:
    try:
        arguments = vars(parser(next((word for word in words if word in VERBS), None)).parse_args(words))
        run = arguments.pop("run")
        with trusting(arguments.pop("trust_code", False), command=f"evenly {shlex.join(words)}"):
            return int(run(**arguments) or 0)
    except EvenlyError as error:
        print(wrap_text(f"evenly: {error}"), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt as interrupt:
        print(wrap_text(f"evenly: {interrupt}" if str(interrupt) else "evenly: interrupted"), file=sys.stderr)
        return 130


def _why_stdout_fails(error: OSError) -> OSError | None:
    """The reason why nothing can be written to stdout, if `error` may have come from there."""
    try:
        print(end="", flush=True)  # what could not be written is still in the buffer, and fails again
    except OSError as again:
        return again
    return error if isinstance(error, BrokenPipeError) else None


class _ToStderr(logging.Handler):
    """Log messages on stderr as it is now, wrapped to the terminal's width: above a progress bar, not inside of it."""

    def emit(self, record: logging.LogRecord) -> None:
        tell(f"evenly: {self.format(record)}")


def _speak_plainly() -> None:
    """Show the library's warnings without their place in the code."""
    logger = logging.getLogger("evenly")
    if not logger.handlers:
        logger.addHandler(_ToStderr())
        logger.setLevel(logging.INFO)
        logger.propagate = False
    warnings.formatwarning = lambda message, *_, **__: wrap_text(f"evenly: {message}") + "\n"
