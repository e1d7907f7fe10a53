"""Rasters: what GDAL reads and writes, with ENVI headers and GeoTIFF maps."""
