"""Video and images in and out, and pictures that explain.

In: frames as bytes, cameras, maps. Out: files that are whole, or frames that were read. It knows cameras and files; it
may not know formats, models or what a video is for.
"""

from curvedray.extras import needed

needed("av", "pillow")
