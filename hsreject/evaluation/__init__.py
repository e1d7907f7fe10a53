"""How good any map is: by points, classes and confidence classes."""
