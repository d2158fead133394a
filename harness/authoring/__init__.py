"""What `init` writes: an author's own protocol, complete and commented, with its model's profile and its claims.

Loads no model. What is written is read back and tried on the author's own sources before a file is made.
"""
