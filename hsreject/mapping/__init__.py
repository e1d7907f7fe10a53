"""Learn on one scene, map another, however large: trained map models and maps made in blocks."""
