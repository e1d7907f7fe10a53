"""Configurations: TOML in, the objects that a Python user would build out."""
