"""Measures of classification with rejection: points, curves, costs, comparison, uncertainty.

The mathematics is that of Condessa, Bioucas-Dias and Kovacevic, "Performance measures for
classification systems with rejection", called *the paper* in this package. Kernels work on plain
arrays of counts; the public functions take NumPy or xarray and return dataclasses or Datasets.
"""
