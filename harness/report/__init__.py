"""report.html of a judged run: one page that needs no network, no other file and no script to be read.

It knows no number that it wasn't given: every figure is one of the claims, the audit record, the ledger or the
statistics, or counts rows of the ledger, and stands beside what it is a count of. Bytes are a function of the run
folder, the protocol's files and the versions that the page names: no clock, no path, no locale.
"""
