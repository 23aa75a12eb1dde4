"""Print each module whose compiled form is missing, stale or not of the image's kind.

Everything in the environment is compiled with the hash of its source and never
checked again; Debian's own is compiled with its time and size, or not at all."""
import importlib.util
import pathlib
import struct
import sys
import sysconfig

UNCHECKED = 1  # the flags of a .pyc that is bound to a hash and not checked

site = pathlib.Path(sysconfig.get_path("purelib"))
count = 0
for source in sorted(site.rglob("*.py")):
    compiled = pathlib.Path(importlib.util.cache_from_source(str(source)))
    text = source.read_bytes()
    if not compiled.exists():
        try:
            compile(text, str(source), "exec")
        except (SyntaxError, ValueError):
            continue  # templates and old Python cannot be compiled
        print("not compiled:", source)
        continue
    head = compiled.read_bytes()[:16]
    flags = struct.unpack("<I", head[4:8])[0]
    if head[:4] != importlib.util.MAGIC_NUMBER or flags != UNCHECKED:
        print("of another kind:", compiled)
    elif head[8:] != importlib.util.source_hash(text):
        print("stale:", compiled)
    count += 1
for compiled in sorted(site.rglob("*.pyc")):
    if not pathlib.Path(importlib.util.source_from_cache(str(compiled))).exists():
        print("of nothing:", compiled)
for compiled in sorted(pathlib.Path("/usr/lib").rglob("__pycache__/*.pyc")):
    source = pathlib.Path(importlib.util.source_from_cache(str(compiled)))
    flags, when, size = struct.unpack("<III", compiled.read_bytes()[4:16])
    stat = source.stat()
    if flags == 0 and (when, size) != (int(stat.st_mtime), stat.st_size):
        print("stale:", compiled)
if count < 200:
    print("only", count, "modules are compiled", file=sys.stdout)
