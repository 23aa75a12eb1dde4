# Settings of every Jupyter server in this image; those in ~/.jupyter win.
# Start one with:   jupyter lab
# It prints a URL with a fresh token; JUPYTER_TOKEN=... in the environment sets it.
import os

c = get_config()  # noqa: F821 - Jupyter defines it

# A container is reached from outside, runs as root, and has no browser.
c.ServerApp.ip = "0.0.0.0"
c.ServerApp.port = 8888
c.ServerApp.allow_root = True
c.ServerApp.open_browser = False
# Another free port would not be the published one: say so instead.
c.ServerApp.port_retries = 0

# Terminals are the image's shell, with its environment as it is.
c.ServerApp.terminado_settings = {"shell_command": [os.environ.get("SHELL", "/bin/bash")]}

# Mounted directories have no trash to move files to.
c.FileContentsManager.delete_to_trash = False
