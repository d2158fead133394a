"""Registered input files: found by their bytes, read after verification, turned into sources. Knows no model."""
