"""The Geometric Attention Adapter: what is trained, beside a transformer that is not.

In: a transformer, an `AdapterConfig`, cameras and (optionally) radii for a pass. Out: what is added to self-attention,
and predicted radii. It knows encodings and the model interface; it may not know data, losses or videos.
"""

from curvedray.extras import needed

needed("pydantic", "safetensors")
