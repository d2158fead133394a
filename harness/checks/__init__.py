"""Checks: pure functions from evidence and a row to the differences found. No model, no docker, no network, no pytest.

A gate is a test that requires one check to find nothing on its row. Each difference is one ASCII line that names the
cell, what was expected and what was found.
"""
