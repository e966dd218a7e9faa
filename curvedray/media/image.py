"""Still images in and out, without loss."""

from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from curvedray.errors import InputError
from curvedray.files import named_file, whole_file
from curvedray.inputs import first_line, input_file, reading
from curvedray.media.video import check_frames

QUICK = 3  # of zlib's nine levels: a third of the usual level's time for an eighth more bytes


def write_png(image: UInt8[Tensor, "h w 3"], path: str | Path) -> Path:
    """A PNG, without loss."""
    from PIL import Image

    path = named_file(path, (".png",))
    check_frames(image[None])
    with whole_file(path) as temporary:
        Image.fromarray(image.cpu().contiguous().numpy()).save(temporary, compress_level=QUICK)
    return path


def read_image(path: str | Path) -> UInt8[Tensor, "h w 3"]:
    """A still image as red, green, blue; transparency is dropped. Its size is looked at before it is decoded."""
    import warnings

    import numpy as np
    from PIL import Image

    path = input_file(path, "an image")
    with reading(str(path), "an image that can be decoded", "Is the file complete?"), warnings.catch_warnings():
        # Pillow's own guard, 89 million pixels, warns; twice as many are an error. Both are refused here.
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(path) as picture:
                return torch.from_numpy(np.array(picture.convert("RGB")))
        except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
            most = f"an image of at most {(Image.MAX_IMAGE_PIXELS or 0) // 10**6} million pixels"
            raise InputError(str(path), most, first_line(error), "Make it smaller first.") from error


def image_size(path: str | Path) -> tuple[int, int]:
    """Width and height of a still image, from its header; nothing is decoded."""
    from PIL import Image

    path = input_file(path, "an image")
    with reading(str(path), "an image that can be decoded", "Is the file complete?"), Image.open(path) as picture:
        return picture.size
