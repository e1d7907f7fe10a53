"""Scene to reject map: the stages of a run, kept on disk as they finish."""
