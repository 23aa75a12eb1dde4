"""Ask uv what each set of requirements comes to.

Each directory of /in/ask holds `requirements`, `constraints`, `excludes`,
`preferences`, pins that hold unless something else forbids them, and `links`, a
directory of stand-in wheels. The indexes are a secret, because their URLs may
hold passwords; each is tried until one answers. The answers go to
/out/answers.json, in the order of the directories' numbers, with the tags of
wheels that this Python takes, best first. Two arguments, a machine and the minor
release of its glibc 2, ask for wheels for that machine instead of this one.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

UV = "/usr/local/bin/uv"
SECRETS = pathlib.Path("/run/secrets")
MACHINE, GLIBC = sys.argv[1:] or (None, None)


def unpack_uv():
    """Take the program out of its wheel."""
    wheel = next(pathlib.Path("/in").glob("uv-*.whl"))
    with zipfile.ZipFile(wheel) as z:
        name = next(n for n in z.namelist() if n.endswith(".data/scripts/uv"))
        with z.open(name) as src, open(UV, "wb") as dst:
            shutil.copyfileobj(src, dst)
    os.chmod(UV, 0o755)


def uv(ask, *more):
    """Compile one ask."""
    if MACHINE:
        more += ("--python-platform", f"{MACHINE}-manylinux_2_{GLIBC}")
    return subprocess.run(
        [UV, "pip", "compile", f"{ask}/requirements", "--constraints", f"{ask}/constraints",
         "--excludes", f"{ask}/excludes",
         "--find-links", f"{ask}/links", "--python", sys.executable, "--only-binary", ":all:",
         "--no-header", "--no-config", "--no-progress", "--quiet", "--cache-dir", "/tmp/uv-cache", *more],
        capture_output=True, text=True, cwd=ask)


def reason(run, url):
    """uv's words on one line, without the index's URL."""
    words = re.sub(r"\s+cause: ", ": ", run.stderr.replace(url, "the index"))
    words = " ".join(words.split())
    words = re.sub(r"://[^/@\s]*@", "://", words)
    return words.removeprefix("error: ") or f"uv ended with code {run.returncode}"


def solve(ask, indexes):
    """Answer one ask from the first index that can."""
    tried = []
    for index in list(indexes):
        where = ("--default-index", index["url"])
        # uv prefers what stands in the file that it is to write.
        chosen = pathlib.Path(tempfile.mkdtemp(), "chosen.txt")
        shutil.copyfile(ask / "preferences", chosen)
        run = uv(ask, "--output-file", chosen, *where)
        if run.returncode == 0:
            run = uv(ask, "--format", "pylock.toml", "--constraints", chosen, *where)
        if run.returncode == 0:
            return {"index": index["name"], "pylock": run.stdout, "via": chosen.read_text(), "tried": tried}
        tried.append({"index": index["name"], "reason": reason(run, index["url"])})
        if run.returncode != 1 and len(indexes) > 1:
            # 1 means that there is no solution; else the index itself is at fault.
            indexes.remove(index)
    return {"tried": tried}


def tags():
    """The tags of this interpreter and the machine's libc, best first."""
    sys.path.insert(0, str(next(pathlib.Path("/in").glob("packaging-*.whl"))))
    from packaging.tags import compatible_tags, cpython_tags, interpreter_version, sys_tags
    if not MACHINE:
        return [str(tag) for tag in sys_tags()]
    names = list(platforms())
    own = "cp" + interpreter_version()
    return [str(tag) for tag in (*cpython_tags(platforms=names), *compatible_tags(interpreter=own, platforms=names))]


def platforms():
    """What packaging would call the other machine, were it run there."""
    legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    yield f"linux_{MACHINE}"
    for minor in range(int(GLIBC), 4 if MACHINE == "x86_64" else 16, -1):
        yield f"manylinux_2_{minor}_{MACHINE}"
        if minor in legacy:
            yield f"{legacy[minor]}_{MACHINE}"


def main():
    if (SECRETS / "ca").exists():
        os.environ["SSL_CERT_FILE"] = str(SECRETS / "ca")
    os.environ.update(UV_HTTP_TIMEOUT="30", UV_HTTP_RETRIES="2", UV_PYTHON_DOWNLOADS="never")
    indexes = json.loads((SECRETS / "indexes").read_text())
    unpack_uv()
    asks = sorted(pathlib.Path("/in/ask").iterdir(), key=lambda p: int(p.name))
    answers = [solve(ask, indexes) for ask in asks]
    pathlib.Path("/out/answers.json").write_text(json.dumps({"tags": tags(), "answers": answers}))


main()
