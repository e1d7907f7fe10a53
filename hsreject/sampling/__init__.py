"""Training and test pixels: drawn per class, per fraction or by blocks, or given.

Every function returns two label arrays, train and test, that share no pixel and hold 0 where a
pixel is not used. What is drawn depends on the seed and the labels alone: not on the type of the
array, its chunks, the platform or the version of NumPy.
"""
