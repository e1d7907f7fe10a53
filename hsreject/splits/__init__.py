"""Labelled pixels to learn from and to test on: drawn one by one, by blocks or by polygons."""
