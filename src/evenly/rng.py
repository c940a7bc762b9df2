"""Randomness by name: every stream is derived from one seed.

Two kinds. `generator` gives an ordinary `torch.Generator` for drawing in sequence. `uniform` is
stateless: the numbers of example i are a pure function of a key and i, on any device, in any order,
for any number of workers; this makes exact resume possible.

Torch itself draws from the global generators of the host and the device: dropout during training, the first weights of
layers. `seed_global` seeds them for a training step, and `fork_generators` restores them for the caller.
"""

import contextlib
import hashlib
import operator
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

Name = str | int


def key(seed: int, *names: Name) -> int:
    """A 63-bit key for the stream `names` under `seed`; different names give unrelated keys.

    >>> key(0, "order", 1) == key(0, "order", 1), key(0, "order", 1) == key(0, "order", 2)
    (True, False)
    >>> key(0, "a", "b") == key(0, "ab"), key(0, 1) == key(0, "1")
    (False, False)
    """
    # The numbers of numpy and torch have a `repr` of their own, and would name another stream.
    plain = (str(name) if isinstance(name, str) else operator.index(name) for name in names)
    text = repr((operator.index(seed), *plain)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def generator(seed: int, *names: Name, device: torch.device | str = "cpu") -> torch.Generator:
    """A `torch.Generator` of its own for the stream `names` under `seed`.

    >>> a, b = generator(0, "init"), generator(0, "init")
    >>> torch.equal(torch.rand(3, generator=a), torch.rand(3, generator=b))
    True
    """
    return torch.Generator(device).manual_seed(key(seed, *names))


def default_generator(device: torch.device | str) -> torch.Generator:
    """The generator that torch draws from on this device by default.

    >>> default_generator("cpu") is torch.default_generator
    True
    """
    device = torch.device(device)
    if device.type == "cpu":
        return torch.default_generator
    if device.type == "mps":
        return torch.mps._get_default_mps_generator()
    module = torch.get_device_module(device)
    module.init()
    generators: tuple[torch.Generator, ...] = module.default_generators
    return generators[module.current_device() if device.index is None else device.index]


def seed_global(stream: int, device: torch.device | str) -> None:
    """Seed the global generators of the host and of this device, and no others.

    >>> seed_global(key(0, "dropout"), "cpu")
    >>> torch.rand(1).item() == torch.rand(1, generator=generator(0, "dropout")).item()
    True
    """
    torch.default_generator.manual_seed(stream)
    if torch.device(device).type != "cpu":
        default_generator(device).manual_seed(stream)


@contextlib.contextmanager
def fork_generators(devices: Iterable[torch.device | str] = ()) -> Iterator[None]:
    """Restore the global generators of the host and of these devices after the context.

    `torch.random.fork_rng` without a list would touch every GPU of the machine, and make a context on each.

    >>> before = torch.get_rng_state()
    >>> with fork_generators():
    ...     _ = torch.rand(3)
    >>> torch.equal(before, torch.get_rng_state())
    True
    """
    generators = [torch.default_generator, *device_generators(devices)]
    states = [g.get_state() for g in generators]
    try:
        yield
    finally:
        for one, state in zip(generators, states, strict=True):
            one.set_state(state)


def device_generators(devices: Iterable[torch.device | str]) -> list[torch.Generator]:
    """The default generators of those devices that are not the host, each once.

    >>> device_generators(["cpu", torch.device("cpu")])
    []
    """
    names = sorted({str(device) for device in devices})
    return [default_generator(name) for name in names if torch.device(name).type not in ("cpu", "meta")]


def uniform(stream: int, counters_N: Tensor, num: int) -> Tensor:
    """`num` uniform numbers in [0, 1) for every counter: a pure function of (stream, counter, position).

    SplitMix64 (Steele et al., 2014) over the counter, in wrapping int64 arithmetic, so that CPU and GPU
    agree to the last bit. float32 with 24 random bits.

    >>> u = uniform(key(0, "crop"), torch.tensor([5, 7]), 2)
    >>> torch.equal(u[1], uniform(key(0, "crop"), torch.tensor([7]), 2)[0])
    True
    """
    return _shift(random_words(stream, counters_N, num), 40).to(torch.float32) * 2.0**-24


def random_words(stream: int, counters_N: Tensor, num: int) -> Tensor:
    """`num` random 64-bit words for every counter, as int64; `uniform` scales them.

    >>> w = random_words(key(0, "noise"), torch.tensor([5, 7]), 2)
    >>> torch.equal(w[1], random_words(key(0, "noise"), torch.tensor([7]), 2)[0])
    True
    """
    start_N = mix(counters_N.to(torch.int64) * _GOLDEN + _to_signed(stream))
    steps_K = torch.arange(1, num + 1, device=counters_N.device, dtype=torch.int64) * _GOLDEN
    return mix(start_N[:, None] + steps_K[None, :])


def mix(z: Tensor) -> Tensor:
    """SplitMix64's finaliser: a bijection of 64-bit words whose output bits look independent of the input's."""
    z = _shift(z, 30).bitwise_xor_(z).mul_(_MIX1)
    z = _shift(z, 27).bitwise_xor_(z).mul_(_MIX2)
    return _shift(z, 31).bitwise_xor_(z)


def _shift(z: Tensor, by: int) -> Tensor:
    """Logical right shift: torch's `>>` copies the sign bit, which the mask removes."""
    return (z >> by).bitwise_and_((1 << (64 - by)) - 1)


def _to_signed(word: int) -> int:
    """The 64-bit word as a signed integer, as torch stores it."""
    word &= (1 << 64) - 1
    return word - (1 << 64) if word >> 63 else word


_GOLDEN = _to_signed(0x9E3779B97F4A7C15)
_MIX1 = _to_signed(0xBF58476D1CE4E5B9)
_MIX2 = _to_signed(0x94D049BB133111EB)
