"""Camera-controlled video generation: a trajectory and a lens, from pinhole to fisheye."""

from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.errors import InputError

__version__ = "0.1.0"
__all__ = ["Cameras", "InputError", "Lens", "TokenGrid"]
