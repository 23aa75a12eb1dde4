"""A stand-in for jupyter_client: a kernel is a Python that runs one cell and ends."""

__version__ = "8.6.0"
