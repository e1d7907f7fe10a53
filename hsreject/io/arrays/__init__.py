"""Arrays in files, not read yet: their pixels, those of HDF5, and bare ones."""
