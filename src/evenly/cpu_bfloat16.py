"""bfloat16 on processors: whether it is native, and processors that announce more than they can do."""

import functools
import os
import subprocess
import sys

import torch

from evenly.errors import SetupError

# Read by oneDNN at its first product, so it must be set before the process starts.
LIMIT = "ONEDNN_MAX_CPU_ISA"
WITHOUT_AMX = "AVX512_CORE_BF16"
_PRODUCT = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); torch.nn.functional.linear(a, a)"


def check_bfloat16_on_cpu() -> None:
    """Refuse bfloat16 on a CPU where a product in bfloat16 would end this process.

    Some virtual machines announce AMX and do not carry out its instructions: a process ends at the first one, with no
    error that Python could catch. A process of its own tries one, where AMX is announced and oneDNN not limited.
    """
    announced = getattr(torch.cpu, "_is_amx_tile_supported", None)
    if announced is None or LIMIT in os.environ or not announced() or not _ends_by_a_signal(_PRODUCT):
        return
    raise SetupError(
        "precision=bf16: this processor announces AMX, but its instructions end the process. Start the command with "
        f"{LIMIT}={WITHOUT_AMX} before it, or leave precision at fp32."
    )


@functools.cache
def _ends_by_a_signal(code: str) -> bool:
    ended = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return ended.returncode < 0


def has_native_bfloat16() -> bool:
    """Whether the processor computes in bfloat16 natively; True where torch cannot tell."""
    queries = [getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")]
    return any(ask is None or ask() for ask in queries)
