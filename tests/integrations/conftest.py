"""The session is run by the Python of QGIS and imports what pytest's own Python may not have."""

collect_ignore = ["qgis_session.py"]
