"""Camera moves in film terms: their values, their text, the cameras that make them, and back.

In: a line of text, or moves as values, and a lens. Out: `Cameras`; or, from `Cameras`, the moves they look like and a
description in words. It knows cameras; it may not know files or models.
"""

from curvedray.extras import needed

needed("scipy")
