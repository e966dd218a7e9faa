"""The Geometric Attention Adapter beside a frozen block."""

from curvedray.paper.drawings import DrawingRunner, architecture_drawing

runner = DrawingRunner(architecture_drawing)
