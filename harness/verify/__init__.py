"""Verifying a run folder from its bytes alone: no model, no engine, no network, and nothing taken at its word."""
