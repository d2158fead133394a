"""The cells of a judged run as one table, a row a cell, for whoever loads tables: Parquet or CSV, the same columns.

The columns are the same for every kind of protocol; what a kind doesn't have is missing. Nothing is judged here.
"""
