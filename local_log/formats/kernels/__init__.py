"""The loops over bytes that Numba compiles: scan, decode, encode and validate. Each call processes a whole chunk."""
