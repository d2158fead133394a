"""Negative controls: for every gate at least one planted fault that turns it red, and what the message says of it."""
