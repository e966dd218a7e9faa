"""One family of metrics per file: pose, lens and orientation, geometry, fidelity, distribution."""
