"""The loops over bytes that Numba compiles: scan, decode, encode and validate, a whole chunk a call."""
