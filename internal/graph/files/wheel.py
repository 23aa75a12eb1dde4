"""Install wheels into /opt/venv below an output directory, the same bytes each time.

usage: wheel.py OUT EPOCH WHEEL...

Runs offline with pypa/installer on sys.path. Final paths are written inside, so
the output can be merged over any root that has the same Python.

A wheel that is no honest archive is refused, with the member that is at fault,
before anything is written; only contents are held to RECORD as they are written,
for reading them twice would take as long as installing them. What a refused run
left is thrown away with it.
"""

import os
import posixpath
import py_compile
import stat
import sys
import sysconfig
import zipfile

from installer import install
from installer.destinations import SchemeDictionaryDestination
from installer.records import RecordEntry, parse_record_file
from installer.sources import WheelFile

VENV = "/opt/venv"

# What a wheel may unpack to: real ones are 1 to 8 times their size, and small ones
# do no harm whatever they unpack to.
MOST, RATIO, SMALL = 16 << 30, 100, 64 << 20

# RECORD does not list what signs it, nor has it a hash of its own.
UNRECORDED = ("RECORD", "RECORD.jws", "RECORD.p7s")


class Refused(Exception):
    """A wheel is not installed; each argument is a line that says why."""


def shape(archive):
    """Yield each member that would not become a file of its own below the root."""
    allowed = min(MOST, max(SMALL, RATIO * os.path.getsize(archive.filename)))
    files, parents, total = set(), set(), 0
    for member in archive.infolist():
        name = member.filename.rstrip("/")
        kind = stat.S_IFMT(member.external_attr >> 16)
        total += member.file_size
        if member.filename.startswith("/"):
            yield member, "the path is absolute"
        elif ".." in name.split("/"):
            yield member, "the path holds .."
        elif posixpath.normpath(name) != name:
            yield member, "the path has empty parts or dots"
        elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            what = "a symbolic link" if kind == stat.S_IFLNK else "a device, pipe or socket"
            yield member, what + ", and a wheel holds files alone"
        elif member.flag_bits & 1:
            yield member, "it is encrypted"
        elif member.filename in files:
            yield member, "it is there twice"
        if total > allowed:
            yield member, f"with it the wheel unpacks to {total} bytes, more than the {allowed} allowed"
            return
        if not member.is_dir():
            files.add(name)
            name = posixpath.dirname(name)
        while name and name not in parents:
            parents.add(name)
            name = posixpath.dirname(name)
    for member in archive.infolist():
        if not member.is_dir() and member.filename in parents:
            yield member, "a file here, and a directory of other members"


def recorded(source, archive):
    """Map members to what RECORD says of them; all but UNRECORDED must have a hash."""
    try:
        rows = list(parse_record_file(source.read_dist_info("RECORD").splitlines()))
        record = {row[0]: RecordEntry.from_elements(*row) for row in rows}
    except Exception as err:
        raise Refused(f"RECORD cannot be read: {err}") from err
    exempt = {posixpath.join(source.dist_info_dir, name) for name in UNRECORDED}
    bad = [
        f"{name}: RECORD has no hash of it" for name in archive.namelist()
        if not name.endswith("/") and name not in exempt and not (name in record and record[name].hash_)
    ]
    if bad:
        raise Refused(*bad)
    return {name: entry for name, entry in record.items() if name not in exempt}


def check(path):
    """Return what a wheel's RECORD says, or raise Refused with all that is wrong."""
    with zipfile.ZipFile(path) as archive:
        bad = [f"{member.filename}: {why}" for member, why in shape(archive)]
        if bad:
            raise Refused(*bad)
        return recorded(WheelFile(archive), archive)


class Venv(SchemeDictionaryDestination):
    """Writes below destdir, holds contents to RECORD, and adds hash-based byte code to it."""

    record = {}  # of the wheel, by member

    def write_file(self, scheme, path, stream, is_executable):
        member = getattr(stream, "name", None)  # none: what the installer adds
        want = self.record.get(member)
        as_it_is = want is None or (scheme != "scripts" and want.hash_.name == self.hash_algorithm)
        true = as_it_is or want.validate_stream(stream)  # a script's first line is rewritten
        if not as_it_is:
            stream.seek(0)
        wrote = super().write_file(scheme, path, stream, is_executable)
        if want is not None and as_it_is:
            true = wrote.hash_ == want.hash_ and want.size in (None, wrote.size)
        if not true:
            raise Refused(f"{member}: its content is not what RECORD says")
        return wrote

    def finalize_installation(self, scheme, record_file_path, records):
        records = list(records)
        modules = [r.path for s, r in records if s == scheme and r.path.endswith(".py")]
        compiled = []
        for module in modules:
            final = os.path.join(self.scheme_dict[scheme], module)
            source = os.path.join(self.destdir, final.lstrip("/"))
            cache = compile_module(source, final)
            if cache:
                name = os.path.join(os.path.dirname(module), "__pycache__", os.path.basename(cache))
                compiled.append((scheme, RecordEntry(name, None, None)))
        return super().finalize_installation(scheme, record_file_path, records + compiled)


def compile_module(source, final):
    """Byte-compile one file; a module meant for another Python is left as it is."""
    cache = os.path.join(
        os.path.dirname(source),
        "__pycache__",
        os.path.basename(source)[:-3] + "." + sys.implementation.cache_tag + ".pyc",
    )
    try:
        # Unchecked: the loader need not stat the source, and no time is inside.
        py_compile.compile(
            source, cache, final, doraise=True, quiet=2,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    except (py_compile.PyCompileError, ValueError, RecursionError):
        return None
    return cache


def scheme(distribution):
    """Where the environment's own Python looks for each kind of file."""
    # Before Python 3.11 an environment had the layout of a plain installation.
    layout = "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix"
    paths = sysconfig.get_paths(layout, {"base": VENV, "platbase": VENV})
    return {
        "purelib": paths["purelib"],
        "platlib": paths["platlib"],
        "scripts": paths["scripts"],
        "data": VENV,
        "headers": os.path.join(VENV, "include", "site", f"python{sys.version_info[0]}.{sys.version_info[1]}", distribution),
    }


def settle(out, epoch):
    """Give every file one time."""
    for root, dirs, files in os.walk(out):
        for name in dirs + files:
            os.utime(os.path.join(root, name), (epoch, epoch), follow_symlinks=False)
    os.utime(out, (epoch, epoch))


def unpack(path, record, out):
    """Install one wheel below out."""
    with WheelFile.open(path) as source:
        destination = Venv(
            scheme_dict=scheme(source.distribution),
            interpreter=VENV + "/bin/python",
            script_kind="posix",
            bytecode_optimization_levels=(),
            destdir=out,
        )
        destination.record = record
        install(source, destination, additional_metadata={"INSTALLER": b"imgforge\n"})


def each(wheels, do):
    """Do something to every wheel; end with all their faults, by the wheel's name."""
    done, bad = {}, []
    for path in wheels:
        name = os.path.basename(path)
        try:
            done[path] = do(path)
        except Refused as err:
            bad += [f"{name}: {line}" for line in err.args]
        except Exception as err:  # of zipfile, installer or the file system
            bad.append(f"{name}: {type(err).__name__}: {err}")
    if bad:
        sys.exit("\n".join(bad))
    return done


def hasten(scratch):
    """Inflate with ISA-L where it is among the tools: the same bytes in half the time.

    A wheel with machine code cannot be imported as the archive it is.
    """
    for tool in [path for path in sys.path if os.path.basename(path).startswith("isal-")]:
        sys.path.remove(tool)
        with zipfile.ZipFile(tool) as archive:
            archive.extractall(scratch)
        sys.path.append(scratch)
        try:
            from isal import isal_zlib
        except ImportError:  # of another Python or machine
            return
        plain = zipfile._get_decompressor
        zipfile._get_decompressor = lambda kind: isal_zlib.decompressobj(-15) if kind == zipfile.ZIP_DEFLATED else plain(kind)
        zipfile.crc32 = isal_zlib.crc32


def main(out, epoch, *wheels):
    os.umask(0o022)
    hasten("/tmp/isal")
    records = each(sorted(wheels), check)
    each(records, lambda path: unpack(path, records[path], out))
    settle(out, int(epoch))


if __name__ == "__main__":
    main(*sys.argv[1:])
