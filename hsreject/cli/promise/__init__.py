"""``hsreject sample``, ``label``, ``certify`` and ``assess``: what may be promised of a map."""
