"""Print each way in which a RECORD and the files in the environment disagree."""
import base64
import csv
import hashlib
import pathlib
import sysconfig

site = pathlib.Path(sysconfig.get_path("purelib"))
listed = set()
for record in sorted(site.glob("*.dist-info/RECORD")):
    for name, digest, size in csv.reader(record.read_text().splitlines()):
        path = (site / name).resolve()
        listed.add(path)
        if not path.is_file():
            print("missing:", path)
            continue
        data = path.read_bytes()
        if not digest:
            if path != record and path.suffix != ".pyc":
                print("no hash:", path)
            continue
        kind, want = digest.split("=")
        got = base64.urlsafe_b64encode(hashlib.new(kind, data).digest()).rstrip(b"=").decode()
        if got != want:
            print("other hash:", path)
        if int(size) != len(data):
            print("other size:", path)
for path in sorted(site.rglob("*")):
    if path.is_file() and path.resolve() not in listed:
        print("not listed:", path)
if len(listed) < 500:
    print("only", len(listed), "files are listed")
