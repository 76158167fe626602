"""Measurements, run by hand or by make: `python -m benchmarks.NAME`."""
