"""Ledgers and statistics: pure functions from a run's record to rows and counts. No model, no clock.

Only `close` touches files.
"""
