"""A pretended CUDA device for tests: `import pretended` before torch, in a process of its own.

Tensors say `cuda:0` or `cuda:1` and compute on the host: values and autograd are real, devices do not mix, each has
its generator and its memory. `pretended.without_float64()` makes it refuse float64, as Apple's GPUs do,
`pretended.with_tf32()` rounds the inputs of products and convolutions where torch's flags allow TF32,
`pretended.with_late_copies()` reads memory that is not pinned too late if a copy does not wait, as Apple's GPUs do, and
`pretended.with_memory(bytes)` runs out of memory. It is no oracle for real kernels, streams, cuDNN or NCCL.
"""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from pretended.build import NoCompilerError, library, torch_folder

__all__ = ["NoCompilerError", "with_late_copies", "with_memory", "with_tf32", "without_float64"]

if "torch" in sys.modules:
    raise ImportError("import pretended before torch: the device must be there when torch first asks for one")

# A virtual machine may name units for bfloat16 (AMX) that its host does not grant: using them would end the process.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
_path = library()
for _name in ("libc10.so", "libtorch_cpu.so", "libtorch.so", "libtorch_python.so"):
    ctypes.CDLL(str(torch_folder() / "lib" / _name), mode=ctypes.RTLD_GLOBAL)
_c = ctypes.CDLL(str(_path), mode=ctypes.RTLD_GLOBAL)
for _function in ("limit", "used", "peak"):
    getattr(_c, f"pretended_{_function}").restype = ctypes.c_longlong
_c.pretended_limit_memory.argtypes = [ctypes.c_longlong]

import torch  # noqa: E402

NUM_DEVICES = 2
waits = 0  # explicit ones: torch.cuda.synchronize and events


def _index(device: Any = None) -> int:
    if device is None:
        return int(_c.pretended_current())
    if isinstance(device, int):
        return device
    index = torch.device(device).index
    return int(_c.pretended_current()) if index is None else index


def _synchronize(device: Any = None) -> None:
    global waits
    waits += 1


def _properties(device: Any = None) -> SimpleNamespace:
    return SimpleNamespace(
        name="Pretended GPU", total_memory=int(_c.pretended_limit()), major=8, minor=0, multi_processor_count=1
    )


streams: list["_Stream"] = []  # those that are entered, the current one last


class _Stream:
    """Everything happens at once: a stream, or an event, has nothing to order."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def wait_stream(self, _: Any) -> None: ...

    def wait_event(self, _: Any) -> None: ...

    def record_event(self, event: Any = None) -> Any:
        return event or _Stream()

    def record(self, _: Any = None) -> None: ...

    def query(self) -> bool:
        return True

    synchronize = _synchronize


@contextlib.contextmanager
def _stream(stream: Any) -> Iterator[None]:
    streams.append(stream)
    try:
        yield
    finally:
        streams.pop()


def _install() -> None:
    cuda: Any = torch.cuda
    _c.pretended_hand_out_default(1)
    cuda.default_generators = tuple(torch.Generator(f"cuda:{i}") for i in range(NUM_DEVICES))
    _c.pretended_hand_out_default(0)
    cuda._lazy_init = lambda: None
    cuda.is_available = cuda.is_initialized = lambda: True
    cuda.is_bf16_supported = lambda *_, **__: True
    cuda.is_current_stream_capturing = lambda: False
    cuda.device_count = torch.accelerator.device_count = lambda: NUM_DEVICES
    cuda.current_device = cuda.random.current_device = _index
    cuda.random.device_count, cuda.random.is_initialized, cuda.random._lazy_init = (
        cuda.device_count,
        *[lambda: True] * 2,
    )
    cuda.set_device = lambda device: _c.pretended_set_current(_index(device))
    cuda.get_device_name = lambda _=None: "Pretended GPU"
    cuda.get_device_capability = lambda _=None: (8, 0)
    cuda.get_device_properties = _properties
    cuda.mem_get_info = lambda device=None: (
        int(_c.pretended_limit() - _c.pretended_used(_index(device))), int(_c.pretended_limit())
    )  # fmt: skip
    cuda.memory_allocated = cuda.memory_reserved = lambda device=None: int(_c.pretended_used(_index(device)))
    cuda.max_memory_allocated = lambda device=None: int(_c.pretended_peak(_index(device)))
    cuda.reset_peak_memory_stats = lambda device=None: _c.pretended_reset_peak(_index(device))
    cuda.empty_cache = lambda: None
    cuda.synchronize = torch.accelerator.synchronize = _synchronize
    cuda.Stream = cuda.Event = _Stream
    cuda.current_stream = cuda.default_stream = lambda _=None: _Stream()
    cuda.stream = _stream
    torch.Tensor.record_stream = lambda *_: None  # type: ignore[method-assign]  # takes real streams only
    cuda.set_sync_debug_mode = lambda _: None
    cuda.get_sync_debug_mode = lambda: 0
    torch.accelerator.current_accelerator = lambda *_, **__: torch.device("cuda")  # type: ignore[assignment]


_install()


@contextlib.contextmanager
def without_float64() -> Iterator[None]:
    """The device has no float64."""
    _c.pretended_refuse_float64(1)
    try:
        yield
    finally:
        _c.pretended_refuse_float64(0)


@contextlib.contextmanager
def with_tf32() -> Iterator[None]:
    """Products and convolutions of float32 read ten bits of mantissa, where torch's flags allow it."""
    _c.pretended_round_to_tf32(1)
    try:
        yield
    finally:
        _c.pretended_round_to_tf32(0)


@contextlib.contextmanager
def with_late_copies() -> Iterator[None]:
    """A copy from the host that does not wait, of memory that is not pinned, finds something else there."""
    _c.pretended_read_late(1)
    try:
        yield
    finally:
        _c.pretended_read_late(0)


@contextlib.contextmanager
def with_memory(num_bytes: int) -> Iterator[None]:
    """Each device has this much memory."""
    before = _c.pretended_limit()
    _c.pretended_limit_memory(num_bytes)
    try:
        yield
    finally:
        _c.pretended_limit_memory(before)
