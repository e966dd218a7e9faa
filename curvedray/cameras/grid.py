"""The token grid: which patch of which frame a token stands for. The only place that knows the order (t, y, x).

t frame   p patch (row-major)   a ray inside the patch
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from curvedray.cameras.arrays import as_whole
from curvedray.cameras.lens import pixel_centers
from curvedray.errors import InputError


@dataclass(frozen=True)
class TokenGrid:
    """The transformer's tokens: latent frames of rows x cols patches. The one place that knows their order, (t y x)."""

    frames: int
    rows: int
    cols: int
    stride: tuple[int, int, int] = (4, 16, 16)  # video frames, pixel rows and columns that a token stands for

    def __post_init__(self) -> None:
        for name in ("frames", "rows", "cols"):
            object.__setattr__(self, name, as_whole(f"TokenGrid.{name}", getattr(self, name)))
        object.__setattr__(self, "stride", _as_stride(self.stride))

    @classmethod
    def from_video(
        cls, frames: int, height: int, width: int, stride: tuple[int, int, int] = (4, 16, 16)
    ) -> "TokenGrid":
        """81 x 480 x 832 -> 21 x 30 x 52: the first frame has a latent frame to itself, then one every four."""
        dt, dy, dx = stride = _as_stride(stride)
        frames, height, width = (as_whole("video's frames, height and width", i, 0) for i in (frames, height, width))
        if (frames - 1) % dt or height % dy or width % dx or min(frames, height, width) < 1:
            nearest = [max(1, round((frames - 1) / dt) * dt + 1)]
            nearest += [max(1, round(size / step)) * step for size, step in ((height, dy), (width, dx))]
            expected = f"frames = {dt} n + 1, a height that divides by {dy} and a width that divides by {dx}"
            raise InputError(
                "video", expected, f"{frames} x {height} x {width}", "The nearest is {} x {} x {}.".format(*nearest)
            )
        return cls((frames - 1) // dt + 1, height // dy, width // dx, stride)

    @property
    def patches(self) -> int:
        return self.rows * self.cols

    @property
    def tokens(self) -> int:
        return self.frames * self.patches

    @property
    def video_frames(self) -> int:
        return (self.frames - 1) * self.stride[0] + 1

    def patch_points(self, size: tuple[int, int], offsets: Float[Tensor, "a 2"]) -> Float[Tensor, "p a 2"]:
        """Pixels of an image (width, height) at fractional offsets (x, y) of each patch; (0, 0) is its top-left."""
        patch = offsets.new_tensor([size[0] / self.cols, size[1] / self.rows])
        corners = pixel_centers((self.cols, self.rows), offsets).reshape(-1, 1, 2) - 0.5
        return (corners + offsets) * patch


def _as_stride(stride: Any) -> tuple[int, int, int]:
    """Frames, pixel rows and pixel columns per token, each at least one."""
    if not isinstance(stride, Sequence) or len(stride) != 3:
        raise InputError("stride", "frames, rows and columns per token, such as (4, 16, 16)", stride)
    dt, dy, dx = (as_whole("stride", i) for i in stride)
    return dt, dy, dx
