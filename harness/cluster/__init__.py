"""A run whose units are made by several machines: workers that each hold the model once, and the journals' merging.

The run folder is the driver's alone: workers send what they landed, and a journal is verified before it is put there.
"""
