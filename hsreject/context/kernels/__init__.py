"""Compiled inner loops of the context solvers. They know plain arrays and nothing else.

Fields are stored as (y, category, x): the innermost loop runs over pixels of one row and one class,
so that it is contiguous in memory and becomes vector instructions.
"""
