#!/opt/venv/bin/python
"""Tell whether the GPU is usable here, and if not, what to do."""
print("gpu-check: not yet")
