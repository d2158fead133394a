"""The verbs of `python -m harness` in an interpreter where no model, engine or network can be had."""

ABSENT = """
import importlib.abc, socket, sys

absent = {"torch", "transformers", "accelerate", "safetensors", "docker", "requests", "urllib3"}

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in absent:
            raise ImportError(f"{name} can't be imported here")

def refuse(*_arguments, **_named):
    raise RuntimeError("a socket was asked for")

sys.meta_path.insert(0, Absent())
socket.socket = socket.create_connection = socket.getaddrinfo = refuse
from harness.__main__ import app
app(prog_name="python -m harness")
"""
