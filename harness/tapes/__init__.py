"""Explicit common random numbers (R08 4): tapes, what a row consumes of one, and what the sampler owes on known CDFs.

Everything is a pure function of identity. No torch, no model, no text.
"""
