"""Files: scenes and labels in, maps out. Nothing below this package knows about files."""
