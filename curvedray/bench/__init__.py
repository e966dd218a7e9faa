"""Benchmarks as functions: what things cost on this machine, beside what they should.

In: a suite's name. Out: measurements, which `curvedray bench` shows as a table or JSON. It knows every room that it
measures; no other room but the command line may know it.
"""
