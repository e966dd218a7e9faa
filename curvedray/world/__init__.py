"""The procedural world: an exact ray-caster, scenes and captions from a seed, and a preview of any path.

In: a seed, or a scene, and cameras. Out: frames, exact distances, captions. It knows cameras, moves, radial
maps and how pictures are drawn; it may not know models.
"""
