"""The sandbox: one fresh container of a real engine for each candidate, and the only place that knows docker.

Takes programs and tasks, gives execution records. It knows no model, no run folder, no cache and no protocol: whoever
calls it decides which image is allowed, what is executed and where a record goes.
"""
