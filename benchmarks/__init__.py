"""Benchmarks: ratios measured in one run, printed as a table, never asserted by the tests."""
