"""The vision transformer of Nguyen et al. (2024), appendix: 768 wide, 8 deep, 8 heads, MLP 2304, patches of 4.

Shapes: N examples, C×H×W pixels, T tokens, E width, A heads, K numbers of a head.
"""

import math

import torch
from torch import Tensor, nn

from evenly.errors import UsageError
from evenly.models.headed import Headed
from evenly.models.options import Count, Depth, Share
from evenly.models.shapes import image, shape_text


class ViT(Headed):
    """Patches – LayerNorm – Linear – LayerNorm, a class token and learned positions, pre-norm blocks, LayerNorm.

    The paper names it ViT-S and takes lucidrains' vit-pytorch, whose heads are 64 numbers wide whatever the width:
    with 8 heads attention works in 512 dimensions. 41,048,938 parameters for 3×32×32 and ten classes. Dropout is
    not stated in the paper; 0 is that code's default.

    Attention is written out, softmax(QKᵀ/√K)V, not called as the fused kernel: that has no second derivative, and
    curvature needs one.

    >>> sum(p.numel() for p in ViT((3, 32, 32), 10).parameters())
    41048938
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        num_classes: int,
        *,
        patch: Count = 4,
        width: Count = 768,
        depth: Depth = 8,
        num_heads: Count = 8,
        head_width: Count = 64,
        mlp_width: Count = 2304,
        dropout: Share = 0.0,
    ) -> None:
        super().__init__()
        channels, height, side = image("vit-s", input_shape)
        if height % patch or side % patch:
            common = math.gcd(height, side)
            divisors = [size for size in range(1, common + 1) if common % size == 0]
            nearest = min(divisors, key=lambda size: abs(size - patch))
            raise UsageError(
                f"vit-s cuts images into patches of {patch}×{patch}, which do not tile inputs of "
                f"{shape_text(input_shape)}. For example: patch={nearest}"
            )
        self.patch = patch
        numbers = channels * patch * patch
        self.embed = nn.Sequential(nn.LayerNorm(numbers), nn.Linear(numbers, width), nn.LayerNorm(width))
        self.class_token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 1 + (height // patch) * (side // patch), width))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(width, num_heads, head_width, mlp_width, dropout) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def features(self, x_NCHW: Tensor) -> Tensor:
        """The class token after the last block, N × E."""
        tokens_NTE = self.embed(patches(x_NCHW, self.patch))
        class_token = self.class_token.expand(len(tokens_NTE), -1, -1)
        tokens_NTE = self.dropout(torch.cat([class_token, tokens_NTE], dim=1) + self.positions)
        out: Tensor = self.norm(self.blocks(tokens_NTE)[:, 0])
        return out


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, width: int, num_heads: int, head_width: int, mlp_width: int, dropout: float) -> None:
        super().__init__()
        inner = num_heads * head_width
        self.num_heads, self.scale = num_heads, head_width**-0.5
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * inner, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Sequential(nn.Linear(inner, width), nn.Dropout(dropout))
        self.mlp = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, mlp_width),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(mlp_width, width),
            nn.Dropout(dropout),
        )

    def forward(self, x_NTE: Tensor) -> Tensor:
        """Tokens to tokens."""
        qkv: Tensor = self.qkv(self.norm(x_NTE))
        q, k, v = qkv.reshape(*qkv.shape[:2], 3, self.num_heads, -1).permute(2, 0, 3, 1, 4).unbind()
        share_NATT = self.dropout((self.scale * q @ k.transpose(2, 3)).softmax(3))
        x_NTE = x_NTE + self.out((share_NATT @ v).transpose(1, 2).flatten(2))
        out: Tensor = x_NTE + self.mlp(x_NTE)
        return out


def patches(x_NCHW: Tensor, size: int) -> Tensor:
    """Images as rows of patches, each with its pixels in reading order and their channels side by side.

    >>> patches(torch.arange(16.0).view(1, 1, 4, 4), 2)[0, 1].tolist()
    [2.0, 3.0, 6.0, 7.0]
    """
    num, channels, height, width = x_NCHW.shape
    cut = x_NCHW.reshape(num, channels, height // size, size, width // size, size)
    return cut.permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)
