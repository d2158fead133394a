"""Registers the harness's pytest plugin; it acts on sessions over gates/ alone."""

pytest_plugins = ["harness.plugin"]
