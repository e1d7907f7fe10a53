"""Vector files, points and tables."""
