"""The context: SegSALSA, its priors and its solvers."""
