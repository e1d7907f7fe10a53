"""Measures of classification with rejection: points, curves, costs, comparison, uncertainty.

The mathematics is that of Condessa, Bioucas-Dias and Kovacevic, "Performance measures for
classification systems with rejection", called *the paper* in this package.

An **operating point** is what one rejection did to the samples: four counts, from which every
measure follows. An `OperatingPoint` is one of them. A **curve** is a Dataset that holds many, with
the same names as columns over the dimension `operating_point`. A **chosen point** is one row of a
curve; `OperatingPoint.from_curve` makes an `OperatingPoint` of it.
"""
