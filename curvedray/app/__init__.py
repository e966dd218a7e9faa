"""The studio: a page on which a creator frames, moves, films and sees whether the camera was obeyed.

In: what the page asks (API.md). Out: numbers it draws, files in one folder, events. A server answers, and one worker
process owns the model. It knows every room below the command line; static/ is the page, and may know API.md alone.
"""
