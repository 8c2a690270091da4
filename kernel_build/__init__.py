"""Builds the libraries of kernels that the wheel has; no part of the product."""
