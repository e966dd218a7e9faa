"""Video models behind one interface: Wan through diffusers, and the embedded model.

In: a name (a folder, a hub id, a file, or nothing for the embedded model). Out: a `VideoModel` that encodes, predicts
velocities and decodes. It knows flow matching, token grids and (the embedded model) the words of the procedural world;
it may not know cameras' paths, adapters or training. Only wan.py imports diffusers.
"""

from curvedray.extras import needed

needed("safetensors")
