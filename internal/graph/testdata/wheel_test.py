"""Holds wheel.py, whose path is the first argument, to wheels of every bad kind.

Runs with pypa/installer on sys.path and writes below a temporary directory.
"""

import base64
import contextlib
import hashlib
import importlib.util
import io
import os
import shutil
import stat
import sys
import tempfile
import unittest
import zipfile

spec = importlib.util.spec_from_file_location("wheel", sys.argv.pop(1))
wheel = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wheel)

INFO = "p-1.dist-info/"
GOOD = {
    "p/__init__.py": b"X = 1\n",
    "p/data.bin": b"\0" * 1000,
    "p-1.data/scripts/tool": b"#!python\nprint(1)\n",
    INFO + "WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    INFO + "METADATA": b"Metadata-Version: 2.1\nName: p\nVersion: 1\n",
    INFO + "entry_points.txt": b"[console_scripts]\np = p:X\n",
}


def row(name, data, algorithm="sha256"):
    digest = base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).decode().rstrip("=")
    return f'"{name}",{algorithm}={digest},{len(data)}\n'


class Wheels(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.out = os.path.join(self.dir, "out")
        os.mkdir(self.out)

    def make(self, more=(), record=None, name="p-1-py3-none-any.whl", drop=()):
        """A wheel of GOOD without drop, then more: (name or ZipInfo, content) pairs."""
        path = os.path.join(self.dir, name)
        members = [(n, d) for n, d in GOOD.items() if n not in drop] + list(more)
        rows = "".join(row(getattr(n, "filename", n), d) for n, d in members)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
            for member, data in members:
                z.writestr(member, data)
            if record is not False:
                z.writestr(INFO + "RECORD", (rows if record is None else record(rows)) + INFO + "RECORD,,\n")
        return path

    def written(self):
        return sorted(os.path.relpath(os.path.join(d, f), self.out) for d, _, fs in os.walk(self.out) for f in fs)

    def refused(self, *paths):
        """What wheel.py says when it ends with a failure."""
        with self.assertRaises(SystemExit) as end:
            wheel.main(self.out, "1000", *paths)
        self.assertIsInstance(end.exception.code, str)
        return end.exception.code

    def refuses(self, want, *more, **how):
        said = self.refused(self.make(more, **how))
        self.assertEqual(said, "p-1-py3-none-any.whl: " + want)
        self.assertEqual(self.written(), [])
        self.assertEqual(sorted(os.listdir(self.dir)), ["out", "p-1-py3-none-any.whl"])

    def test_good(self):
        wheel.main(self.out, "1000", self.make())
        got = self.written()
        for want in ("opt/venv/bin/p", "opt/venv/bin/tool"):
            self.assertIn(want, got)
        site = [f for f in got if f.endswith("/p/__init__.py") or f.endswith("/p/data.bin") or f.endswith(".dist-info/RECORD")]
        self.assertEqual(len(site), 3, got)
        with open(os.path.join(self.out, "opt/venv/bin/tool")) as f:
            self.assertEqual(f.readline(), "#!/opt/venv/bin/python\n")

    def test_other_hashes(self):
        def sha512(rows):
            return "".join(row(n, d, "sha512") for n, d in GOOD.items())
        wheel.main(self.out, "1000", self.make(record=sha512))
        data = next(f for f in self.written() if f.endswith("/p/data.bin"))
        self.assertEqual(os.path.getsize(os.path.join(self.out, data)), 1000)

    def test_signed(self):
        """What signs RECORD cannot be listed in it."""
        name = INFO + "RECORD.jws"
        wheel.main(self.out, "1000", self.make([(name, b"{}")], record=lambda rows: rows.replace(row(name, b"{}"), "")))

    def test_directories(self):
        """Some tools write members for directories, even twice; they need no hash."""
        def bare(rows):
            return "".join(line for line in rows.splitlines(True) if '/",' not in line)
        wheel.main(self.out, "1000", self.make([("p/", b""), ("p/sub/", b""), ("p/sub/x.py", b"")], record=bare))

    def test_traversal(self):
        self.refuses("../evil: the path holds ..", ("../evil", b"x"))
        self.refuses("p/../../../evil.py: the path holds ..", ("p/../../../evil.py", b"x"))
        self.refuses("p-1.data/data/../../../etc/x: the path holds ..", ("p-1.data/data/../../../etc/x", b"x"))

    def test_absolute(self):
        self.refuses("/etc/passwd: the path is absolute", ("/etc/passwd", b"x"))
        self.refuses("//etc/passwd: the path is absolute", ("//etc/passwd", b"x"))

    def test_odd_path(self):
        self.refuses("p//x.py: the path has empty parts or dots", ("p//x.py", b"x"))
        self.refuses("./p/x.py: the path has empty parts or dots", ("./p/x.py", b"x"))

    def special(self, kind, name="p/odd"):
        info = zipfile.ZipInfo(name)
        info.create_system, info.external_attr = 3, (kind | 0o777) << 16
        return info

    def test_symlink(self):
        self.refuses("p/odd: a symbolic link, and a wheel holds files alone", (self.special(stat.S_IFLNK), b"/etc/passwd"))

    def test_device(self):
        for kind in (stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK):
            self.refuses("p/odd: a device, pipe or socket, and a wheel holds files alone", (self.special(kind), b""))

    def test_twice(self):
        with self.assertWarns(UserWarning):
            self.refuses("p/__init__.py: it is there twice", ("p/__init__.py", b"X = 2\n"))

    def test_file_and_directory(self):
        self.refuses("p/data.bin: a file here, and a directory of other members", ("p/data.bin/x.py", b""))

    def test_encrypted(self):
        path = self.make([("p/secret.py", b"x")])
        with open(path, "r+b") as f:
            data = bytearray(f.read())
            at = data.rindex(b"PK\1\2", 0, data.rindex(b"p/secret.py"))
            data[at + 8] |= 1
            f.seek(0)
            f.write(data)
        self.assertEqual(self.refused(path), "p-1-py3-none-any.whl: p/secret.py: it is encrypted")

    def test_bomb(self):
        whole = wheel.SMALL + 1 + sum(len(data) for data in GOOD.values())
        self.refuses(f"p/bomb: with it the wheel unpacks to {whole} bytes, more than the {wheel.SMALL} allowed",
                     ("p/bomb", bytes(wheel.SMALL + 1)))

    def test_bomb_by_ratio(self):
        """Above what any wheel may, the size of the wheel counts: no one member is large."""
        parts = [(f"p/part{i}", bytes(3 << 20)) for i in range(30)]
        said = self.refused(self.make(parts))
        self.assertRegex(said, r"^p-1-py3-none-any.whl: p/part2\d: with it the wheel unpacks to \d+ bytes")
        self.assertEqual(self.written(), [])

    def test_bomb_that_lies(self):
        """A member that unpacks to more than it says is cut there, and then has another checksum."""
        path = self.make([("p/lies", bytes(1 << 20))])
        with open(path, "r+b") as f:
            data = f.read()
            f.seek(0)
            f.write(data.replace((1 << 20).to_bytes(4, "little"), (7).to_bytes(4, "little")))
        self.assertRegex(self.refused(path), "^p-1-py3-none-any.whl: BadZipFile: .*p/lies")

    def test_content_is_not_what_record_says(self):
        for name in ("p/data.bin", "p-1.data/scripts/tool", INFO + "METADATA"):
            bad = row(name, b"other")
            self.out = tempfile.mkdtemp(dir=self.dir)
            said = self.refused(self.make(record=lambda rows: rows.replace(row(name, GOOD[name]), bad)))
            self.assertEqual(said, f"p-1-py3-none-any.whl: {name}: its content is not what RECORD says")

    def test_size_is_not_what_record_says(self):
        said = self.refused(self.make(record=lambda rows: rows.replace(",1000\n", ",1001\n")))
        self.assertEqual(said, "p-1-py3-none-any.whl: p/data.bin: its content is not what RECORD says")

    def test_not_in_record(self):
        mine = row("p/data.bin", GOOD["p/data.bin"])
        for other in ("", "p/data.bin,,\n"):
            self.refuses("p/data.bin: RECORD has no hash of it", record=lambda rows: rows.replace(mine, other))

    def test_bad_record(self):
        for record, why in ((False, "RECORD cannot be read: .*RECORD"), (lambda rows: "one,two\n", "RECORD cannot be read: .*expected 3 elements"),
                            (lambda rows: rows.replace("sha256=", "nosuch="), "RECORD cannot be read: .*invalid hash algorithm")):
            said = self.refused(self.make(record=record))
            self.assertRegex(said, "^p-1-py3-none-any.whl: " + why)
            self.assertEqual(self.written(), [])

    def test_damaged(self):
        path = self.make()
        with open(path, "r+b") as f:
            f.truncate(os.path.getsize(path) // 2)
        self.assertRegex(self.refused(path), "^p-1-py3-none-any.whl: BadZipFile: ")
        path = self.make()
        with open(path, "r+b") as f:
            f.seek(40)
            f.write(b"\xff\xff")
        self.assertRegex(self.refused(path), "^p-1-py3-none-any.whl: ")

    def test_entry_point(self):
        """A launcher's name is a path too."""
        name = INFO + "entry_points.txt"
        for launcher in ("../../evil", "/evil"):
            out = self.out = tempfile.mkdtemp(dir=self.dir)
            said = self.refused(self.make([(name, f"[console_scripts]\n{launcher} = p:X\n".encode())], drop=[name]))
            self.assertIn(f"p-1-py3-none-any.whl: ValueError: Attempting to write {launcher} outside", said)
            self.assertEqual(self.written(), [], out)
            self.assertFalse(os.path.exists("/evil") or os.path.exists(os.path.join(self.dir, "evil")))

    def test_two_wheels_one_path(self):
        first, second = self.make(), self.make(name="p-1-py2.py3-none-any.whl")
        self.assertRegex(self.refused(first, second), "^p-1-py3-none-any.whl: FileExistsError: File already exists: ")

    def test_all_faults_at_once(self):
        a = self.make([("../a", b""), ("/b", b"")])
        b = self.make([(self.special(stat.S_IFLNK), b"x")], name="p-1-py2.py3-none-any.whl")
        good = self.make(name="p-1-1-py3-none-any.whl")
        said = self.refused(a, b, good).splitlines()
        self.assertEqual([line.split(": ")[:2] for line in said],
                         [["p-1-py2.py3-none-any.whl", "p/odd"], ["p-1-py3-none-any.whl", "../a"], ["p-1-py3-none-any.whl", "/b"]])
        self.assertEqual(self.written(), [])


class Haste(unittest.TestCase):
    """The faster inflate among the tools is used where it can be imported, and not missed where not."""

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.kept = zipfile._get_decompressor, zipfile.crc32, list(sys.path)

    def tearDown(self):
        zipfile._get_decompressor, zipfile.crc32, sys.path[:] = self.kept
        for name in ("isal", "isal.isal_zlib"):
            sys.modules.pop(name, None)
        shutil.rmtree(self.dir)

    def read(self, module):
        tool = os.path.join(self.dir, "isal-9-py3-none-any.whl")
        with zipfile.ZipFile(tool, "w") as archive:
            archive.writestr("isal/__init__.py", "")
            archive.writestr("isal/isal_zlib.py", module)
        some = os.path.join(self.dir, "some.zip")
        with zipfile.ZipFile(some, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("deflated", b"x" * 100_000)
            archive.writestr("stored", b"y", zipfile.ZIP_STORED)
        sys.path.append(tool)
        wheel.hasten(os.path.join(self.dir, "scratch"))
        self.assertNotIn(tool, sys.path)
        with zipfile.ZipFile(some) as archive:
            return archive.read("deflated") == b"x" * 100_000 and archive.read("stored") == b"y"

    def test_used(self):
        self.assertTrue(self.read("from zlib import *\nimport zlib\nused = []\n"
                                  "def decompressobj(bits):\n    used.append(bits)\n    return zlib.decompressobj(bits)\n"))
        self.assertEqual(sys.modules["isal.isal_zlib"].used, [-15])

    def test_of_another_python(self):
        self.assertTrue(self.read("raise ImportError('wrong ABI')"))
        self.assertIs(zipfile._get_decompressor, self.kept[0])


if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        unittest.main(verbosity=0)
