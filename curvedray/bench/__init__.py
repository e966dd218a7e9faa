"""Benchmarks as functions: each suite returns measurements, which `curvedray bench` shows as a table or JSON."""
