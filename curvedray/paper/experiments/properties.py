"""Geometry-aware encodings: which can do what."""

from curvedray.paper.drawings import DrawingRunner, properties_drawing

runner = DrawingRunner(properties_drawing)
