"""The command line: `python -m harness VERB`. Each verb is a thin layer over the package that does the work."""
