"""Products people download: one file per family, a common opener, and an engine for xarray."""
