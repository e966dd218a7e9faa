"""Prompt + Cameras (+ RadialMap) -> video, and the recipe that makes it again.

In: a model, an adapter, a prompt, cameras. Out: frames, files, and all that decided them. It knows models and
adapters, how cameras and maps are read, and the embedded model's world; it may not know training or evaluation.
"""
