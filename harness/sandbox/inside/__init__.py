"""What runs inside the container, as plain sources: read as text, never imported by the harness's own code.

They need nothing but a Python 3.8 with ctypes and know no engine.
"""
