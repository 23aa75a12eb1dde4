"""Import every module that a distribution brings, and print the .pyc that appear."""
import importlib
import importlib.metadata
import pathlib
import sys


def compiled():
    return {p: p.stat().st_mtime_ns for top in ("/opt/venv", "/usr/lib") for p in pathlib.Path(top).rglob("*.pyc")}


assert not sys.dont_write_bytecode, "this test is about an interpreter that may write"
before = compiled()
names = sorted(n for n in importlib.metadata.packages_distributions() if n.isidentifier())
import setuptools  # noqa: E402,F401 - before pip, which takes distutils away from it
for name in names:
    importlib.import_module(name)
for extra in ("matplotlib.pyplot", "numpy.linalg", "PIL.Image", "tqdm.auto", "json", "sqlite3", "ssl", "email.message"):
    importlib.import_module(extra)
after = compiled()
for path in sorted(set(before) | set(after)):
    if before.get(path) != after.get(path):
        print("written:", path)
if "numpy" not in names or "matplotlib" not in names:
    print("imported only", names)
