"""The embedded model: a tiny Wan with latents and a text encoder of its own, shipped in the package."""
