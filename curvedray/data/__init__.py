"""Footage: from folders and the procedural world to clips that a loss can use.

In: videos, camera files, captions, radial maps. Out: `Clip`s of latents, text, cameras and targets, cached. It knows
models only to encode with them; it may not know recipes, adapters or training.
"""

from curvedray.extras import needed

needed("safetensors")
