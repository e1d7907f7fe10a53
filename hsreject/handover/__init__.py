"""From map to desk and back: polygons, sieved and filled maps, provenance, where to label next."""
