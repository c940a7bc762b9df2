"""TrivialAugment with the wide space: one operation per image, one strength, nothing to tune.

Müller & Hutter, "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation", ICCV 2021. Every image
draws one of fourteen operations, one of `bins` strengths and a sign, each uniformly.

Arithmetic is Pillow's, which the authors used: moves in 16.16 fixed point, nearest neighbour, black outside;
blends in float32, truncated; tables in whole numbers. All fourteen operations agree with Pillow to the bit,
but for one rounding: autocontrast takes the exact quotient 255·(v − low)/(high − low), where Pillow's double
precision falls just short of a whole number on 0.4 % of all (low, high, v) and is then one lower.

Shapes: N images, C channels (1 or 3), H × W pixels.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.data.draws import Draws, check_images, whole_below
from evenly.device import upload
from evenly.errors import UsageError

MOVES = ("shear-x", "shear-y", "translate-x", "translate-y", "rotate")
BLENDS = ("brightness", "colour", "contrast", "sharpness")
TABLES = ("posterize", "solarize", "autocontrast", "equalize")
OPERATIONS = ("identity", *MOVES, *BLENDS, *TABLES)


@dataclass(frozen=True)
class TrivialAugment:
    """One random operation of random strength per image (Müller & Hutter, 2021, wide space).

    >>> x = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8)
    >>> TrivialAugment()(x, Draws(0, 0, torch.arange(4))).shape
    torch.Size([4, 3, 8, 8])
    """

    bins: int = 31

    def __post_init__(self) -> None:
        if not isinstance(self.bins, int) or self.bins < 2:
            raise UsageError(f"trivial: the number of strengths must be a whole number ≥ 2, not {self.bins!r}.")

    def __call__(self, x_NCHW: Tensor, draws: Draws) -> Tensor:
        """Each image after the operation it drew."""
        return apply(x_NCHW, *self.choices(draws))

    def choices(self, draws: Draws) -> tuple[Tensor, Tensor]:
        """The operation of each image, as its place in `OPERATIONS`, and its strength with sign."""
        u_N3 = draws.uniform("trivial", 3)
        operation_N = whole_below(u_N3[:, 0], len(OPERATIONS))
        strength_N = strengths(self.bins)[operation_N, whole_below(u_N3[:, 1], self.bins)]
        negative_N = _SIGNED[operation_N] & (u_N3[:, 2] < 0.5)
        return operation_N, torch.where(negative_N, -strength_N, strength_N)

    def for_evaluation(self) -> None:
        """Nothing: evaluation sees the image as it is."""


def strengths(bins: int) -> Tensor:
    """The strengths of each operation, weakest first: one row per operation, float64.

    Shears and blends to 0.99, translations to 32 pixels, rotation to 135°, posterize from 8 bits to 2,
    solarize from 255 to 0; the rest has none.

    >>> table = strengths(31)
    >>> table[OPERATIONS.index("rotate"), -1].item(), table[OPERATIONS.index("posterize"), [0, 15, 30]].tolist()
    (135.0, [8.0, 5.0, 2.0])
    """
    step = torch.arange(bins, dtype=torch.float64)

    def up_to(top: float) -> Tensor:
        return top * step / (bins - 1)  # in this order: strengths that are whole numbers come out whole

    rows = dict.fromkeys(OPERATIONS, up_to(0))
    rows |= dict.fromkeys(("shear-x", "shear-y", *BLENDS), up_to(0.99))
    rows |= {"translate-x": up_to(32), "translate-y": up_to(32), "rotate": up_to(135)}
    rows |= {"posterize": 8 - up_to(6).round(), "solarize": up_to(255).flip(0)}
    return torch.stack([rows[name] for name in OPERATIONS])


def apply(x_NCHW: Tensor, operation_N: Tensor, strength_N: Tensor) -> Tensor:
    """Apply to each image its operation (a place in `OPERATIONS`) at its signed strength.

    >>> x = torch.tensor([[[[10, 200]]]], dtype=torch.uint8)
    >>> apply(x, torch.tensor([OPERATIONS.index("solarize")]), torch.tensor([100.0])).flatten().tolist()
    [10, 55]
    """
    check_images(x_NCHW, "trivial")
    if x_NCHW.shape[1] not in (1, 3):
        raise UsageError(f"trivial works on images of 1 or 3 channels, not {x_NCHW.shape[1]}. Use other transforms.")
    out_NCHW = x_NCHW.clone()
    operation_N, strength_N = operation_N.cpu(), strength_N.to("cpu", torch.float64)
    for names, act in ((MOVES, _move), (BLENDS, _blend), (TABLES, _look_up)):
        where_M = torch.isin(operation_N, _places(names)).nonzero()[:, 0]
        if len(where_M):
            place_M = upload(where_M, x_NCHW.device)
            part = act(x_NCHW.index_select(0, place_M), operation_N[where_M], strength_N[where_M])
            out_NCHW.index_copy_(0, place_M, part)
    return out_NCHW


def _places(names: tuple[str, ...]) -> Tensor:
    return torch.tensor([OPERATIONS.index(name) for name in names])


_SIGNED = torch.isin(torch.arange(len(OPERATIONS)), _places(MOVES + BLENDS))


# ---- moves: an affine map from output to source pixels, nearest neighbour -----------------------------------------


def _move(x_NCHW: Tensor, operation_N: Tensor, strength_N: Tensor) -> Tensor:
    num, channels, height, width = x_NCHW.shape
    step_N6 = upload(_fixed_point(_maps(operation_N, strength_N, height, width)), x_NCHW.device)
    ax, bx, cx, ay, by, cy = (column[:, None, None] for column in step_N6.unbind(1))
    row_H1 = torch.arange(height, device=x_NCHW.device)[:, None]
    col_W = torch.arange(width, device=x_NCHW.device)
    source_x_NHW = (ax * col_W + bx * row_H1 + cx) >> 16
    source_y_NHW = (ay * col_W + by * row_H1 + cy) >> 16
    inside_NHW = (source_x_NHW >= 0) & (source_x_NHW < width) & (source_y_NHW >= 0) & (source_y_NHW < height)
    pixel_NHW = torch.where(inside_NHW, source_y_NHW * width + source_x_NHW, 0)
    taken = x_NCHW.flatten(2).gather(2, pixel_NHW.flatten(1)[:, None].expand(-1, channels, -1))
    return taken.view(num, channels, height, width) * inside_NHW[:, None]


def _maps(operation_N: Tensor, strength_N: Tensor, height: int, width: int) -> Tensor:
    """Six numbers a, b, c, d, e, f per image: output (x, y) shows source (ax + by + c, dx + ey + f).

    Shears leave the top-left corner in place; rotation is counter-clockwise about the centre.
    """

    def only(name: str, values_N: Tensor) -> Tensor:
        return torch.where(operation_N == OPERATIONS.index(name), values_N, 0.0)

    angle_N = -torch.deg2rad(only("rotate", strength_N))
    cos_N, sin_N = angle_N.cos(), angle_N.sin()
    mid_x, mid_y = width / 2, height / 2
    return torch.stack(
        [
            cos_N,
            sin_N + only("shear-x", strength_N),
            mid_x - cos_N * mid_x - sin_N * mid_y - only("translate-x", strength_N.trunc()),
            -sin_N + only("shear-y", strength_N),
            cos_N,
            mid_y + sin_N * mid_x - cos_N * mid_y - only("translate-y", strength_N.trunc()),
        ],
        dim=1,
    )


def _fixed_point(maps_N6: Tensor) -> Tensor:
    """The maps in steps of 2⁻¹⁶, taken at pixel centres: with whole numbers all devices agree."""
    a, b, c, d, e, f = maps_N6.unbind(1)
    centred = torch.stack([a, b, c + (a + b) / 2, d, e, f + (d + e) / 2], dim=1)
    return (centred * 65536 + 0.5).floor().to(torch.int64)


# ---- blends: towards a plainer image, or beyond the original away from it -----------------------------------------


def _blend(x_NCHW: Tensor, operation_N: Tensor, strength_N: Tensor) -> Tensor:
    plain_NCHW = torch.zeros_like(x_NCHW)  # brightness blends with black
    for name, plainer in _PLAINER.items():
        where_M = upload((operation_N == OPERATIONS.index(name)).nonzero()[:, 0], x_NCHW.device)
        if len(where_M):
            plain_NCHW.index_copy_(0, where_M, plainer(x_NCHW.index_select(0, where_M)))
    factor_N111 = upload((1 + strength_N).to(torch.float32), x_NCHW.device)[:, None, None, None]
    plain = plain_NCHW.to(torch.float32)
    return (plain + factor_N111 * (x_NCHW.to(torch.float32) - plain)).clamp_(0, 255).to(torch.uint8)


def _grey(x_NCHW: Tensor) -> Tensor:
    """Luma by ITU-R 601 in 16-bit weights, repeated over the channels; an image of one channel is its own."""
    if x_NCHW.shape[1] == 1:
        return x_NCHW
    red, green, blue = x_NCHW.to(torch.int32).unbind(1)
    luma_NHW = (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16
    return luma_NHW.to(torch.uint8)[:, None].expand_as(x_NCHW)


def _mean_grey(x_NCHW: Tensor) -> Tensor:
    """A flat image of the mean luma, rounded."""
    luma_NP = _grey(x_NCHW)[:, 0].flatten(1)
    count = luma_NP.shape[1]
    mean_N = (2 * luma_NP.sum(1, dtype=torch.int64) + count) // (2 * count)
    return mean_N.to(torch.uint8)[:, None, None, None].expand_as(x_NCHW)


def _smooth(x_NCHW: Tensor) -> Tensor:
    """Each inner pixel the mean of its 3×3 block with fivefold weight on itself; the border as it was."""
    x = x_NCHW.to(torch.int32)
    rows = x[..., :-2, :] + x[..., 1:-1, :] + x[..., 2:, :]
    block = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
    out_NCHW = x_NCHW.clone()
    out_NCHW[..., 1:-1, 1:-1] = (2 * (block + 4 * x[..., 1:-1, 1:-1]) + 13) // 26
    return out_NCHW


_PLAINER: dict[str, Callable[[Tensor], Tensor]] = {"colour": _grey, "contrast": _mean_grey, "sharpness": _smooth}


# ---- tables: 256 new values for each image and channel ------------------------------------------------------------


def _look_up(x_NCHW: Tensor, operation_N: Tensor, strength_N: Tensor) -> Tensor:
    table_NCV = torch.empty(*x_NCHW.shape[:2], 256, dtype=torch.int64, device=x_NCHW.device)
    for name, rule in _RULES.items():
        where_M = (operation_N == OPERATIONS.index(name)).nonzero()[:, 0]
        if len(where_M):
            place_M = upload(where_M, x_NCHW.device)
            strength_M11 = upload(strength_N[where_M].to(torch.float32), x_NCHW.device)[:, None, None]
            part = x_NCHW.index_select(0, place_M)
            table_MCV = rule(part.flatten(2).to(torch.int64), strength_M11).expand(*part.shape[:2], 256)
            table_NCV.index_copy_(0, place_M, table_MCV)
    return table_NCV.gather(2, x_NCHW.flatten(2).to(torch.int64)).to(torch.uint8).view(x_NCHW.shape)


def _posterize(x_NCP: Tensor, bits_N11: Tensor) -> Tensor:
    return _values(x_NCP) & (-1 << (8 - bits_N11.to(torch.int64)))


def _solarize(x_NCP: Tensor, threshold_N11: Tensor) -> Tensor:
    value_V = _values(x_NCP)
    return torch.where(value_V < threshold_N11, value_V, 255 - value_V)


def _autocontrast(x_NCP: Tensor, _: Tensor) -> Tensor:
    low, high = x_NCP.amin(2, keepdim=True), x_NCP.amax(2, keepdim=True)
    value_V = _values(x_NCP)
    stretched = (255 * (value_V - low)).div((high - low).clamp_min(1), rounding_mode="floor").clamp(0, 255)
    return torch.where(high > low, stretched, value_V)


def _equalize(x_NCP: Tensor, _: Tensor) -> Tensor:
    num, channels, pixels = x_NCP.shape
    plane_NC1 = torch.arange(num * channels, device=x_NCP.device).view(num, channels, 1)
    value_K = (x_NCP + 256 * plane_NC1).flatten()
    if x_NCP.is_cpu:
        count_NCV = torch.bincount(value_K, minlength=256 * num * channels)
    else:  # on other devices `bincount` waits, to learn the largest value
        count_NCV = torch.zeros(256 * num * channels, dtype=torch.int64, device=x_NCP.device)
        count_NCV.scatter_add_(0, value_K, torch.ones_like(value_K))
    count_NCV = count_NCV.view(num, channels, 256)
    brightest = count_NCV.gather(2, x_NCP.amax(2, keepdim=True))
    step = (pixels - brightest) // 255
    below_NCV = count_NCV.cumsum(2) - count_NCV
    even = ((step // 2 + below_NCV) // step.clamp_min(1)).clamp(0, 255)
    return torch.where(step > 0, even, _values(x_NCP))


def _values(like: Tensor) -> Tensor:
    return torch.arange(256, device=like.device)


_RULES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "posterize": _posterize,
    "solarize": _solarize,
    "autocontrast": _autocontrast,
    "equalize": _equalize,
}
