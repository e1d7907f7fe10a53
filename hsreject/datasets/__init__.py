"""Scenes that everybody compares on: Indian Pines offline, others by name and checksum."""
