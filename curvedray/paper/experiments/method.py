"""CRePE in four panels, its curves computed by the package."""

from curvedray.paper.drawings import DrawingRunner, method_drawing

runner = DrawingRunner(method_drawing)
