"""Lenses, and cameras that look through them.

In: angles, millimetres, poses, other tools' lens models. Out: `Lens`, `Cameras`, `TokenGrid`, the three types that all
other rooms speak in. It knows torch and (to fit a lens) scipy; it may not know files, moves or models.
"""

from typing import TYPE_CHECKING

from curvedray.lazy_names import lazy_names

if TYPE_CHECKING:
    from curvedray.cameras.cameras import Cameras, Unit, check_poses, inverse_pose, stacked
    from curvedray.cameras.grid import TokenGrid
    from curvedray.cameras.lens import Lens
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "Cameras": "cameras",
            "Lens": "lens",
            "TokenGrid": "grid",
            "Unit": "cameras",
            "check_poses": "cameras",
            "inverse_pose": "cameras",
            "stacked": "cameras",
        },
    )

__all__ = ["Cameras", "Lens", "TokenGrid", "Unit", "check_poses", "inverse_pose", "stacked"]
