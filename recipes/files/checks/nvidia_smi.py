"""Does the driver answer, is it at least the floor, and are the GPUs free?

--floor=525.60.13     the oldest driver the image supports
--gpu="RTX 4090"      model that each GPU must be, by words of its name
--max-used=1024       MiB that may be in use on a GPU before anything runs
"""

import re
import subprocess
import sys

from diagnosis import SMI, START, diagnose, version
from result import Stop, main, release

# An old driver may lack the last ones: it is asked again without what it names.
FIELDS = ["index", "name", "uuid", "driver_version", "memory.total", "memory.used", "mig.mode.current", "compute_cap"]
OPTIONAL = {"mig.mode.current", "compute_cap"}


def smi(report, *args):
    """How nvidia-smi ends, what it prints, and that with its errors."""
    try:
        process = subprocess.Popen(["nvidia-smi", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
        out, err = process.communicate(timeout=60)
    except FileNotFoundError as err:
        report.problem("there is no nvidia-smi", START, "no NVIDIA driver is mounted into this container")
        raise Stop from err
    except subprocess.TimeoutExpired:
        process.kill()  # and no waiting for it: inside the driver it cannot be killed
        report.problem("nvidia-smi does not end within a minute", ["look at the host's dmesg for Xid errors", "reboot the host"],
                       "the driver or a GPU hangs")
        raise Stop from None
    print(out, err, file=sys.stderr)
    return process.returncode, out, err + out


def fail(report, code, said):
    """An exit code of nvidia-smi, explained by its text where that is known."""
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["no message"]
    meaning, todo = diagnose(said) or SMI.get(code, ("", ["run nvidia-smi on the host"]))
    message = min(lines, key=lambda line: line.count(","))  # no row of a table that it could still print
    report.problem(f"nvidia-smi ends with code {code}: {message}", todo, meaning)
    raise Stop


def query(report):
    """A dict for each GPU; fields that an old driver does not know are left out."""
    fields = list(FIELDS)
    while True:
        code, out, said = smi(report, "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits")
        refused = re.search(r'Field "([^"]+)" is not a valid field', said)
        if refused and refused.group(1) in OPTIONAL and refused.group(1) in fields:
            fields.remove(refused.group(1))
            continue
        if code != 0 or refused:
            fail(report, code, said)
        rows = [[value.strip() for value in line.split(",")] for line in out.splitlines() if line.strip()]
        bad = [row for row in rows if len(row) != len(fields)]
        if bad:
            report.problem("nvidia-smi prints another form: " + ", ".join(bad[0])[:100], "run nvidia-smi on the host")
            raise Stop
        return [dict(zip(fields, row)) for row in rows]


def number(text):
    return int(text) if re.fullmatch(r"\d+", text or "") else None


def instances(report):
    """MIG devices by the index of their GPU."""
    code, out, said = smi(report, "-L")
    if code != 0:
        fail(report, code, said)
    found, at = {}, None
    for line in out.splitlines():
        gpu = re.match(r"GPU (\d+):", line)
        mig = re.match(r"\s+MIG (\S+)\s+Device\s+(\d+):", line)
        if gpu:
            at = gpu.group(1)
        elif mig and at is not None:
            found.setdefault(at, []).append(mig.group(1))
    return found


def processes(report, wanted):
    """Names of the processes on the GPUs; in a container some are hidden, as [Not Found]."""
    code, out, said = smi(report, "--query-compute-apps=pid,process_name,used_gpu_memory", "--format=csv,noheader,nounits")
    if code != 0 and wanted:
        fail(report, code, said)
    return re.findall(r"^\d+, *(.*), *[^,]*$", out, re.MULTILINE) if code == 0 else []


def check_gpu(row, options, report):
    """One GPU: its model, and what of its memory is taken."""
    gpu = {"index": number(row["index"]), "name": row["name"], "uuid": row["uuid"], "memory_total": number(row["memory.total"]) or 0,
           "memory_used": number(row["memory.used"]), "mig": row.get("mig.mode.current", "").lower() == "enabled"}
    capability = row.get("compute_cap", "")
    if re.fullmatch(r"\d+\.\d+", capability):
        gpu["capability"] = capability
    wanted = re.findall(r"[a-z0-9]+", (options["gpu"] or "").lower())
    has = re.findall(r"[a-z0-9]+", row["name"].lower())
    if not all(word in has for word in wanted):
        report.problem(f"GPU {row['index']} is {row['name']}, not {options['gpu']}", "run the check where that GPU is, or leave `gpu` out")
    most, used = options["max-used"], gpu["memory_used"]
    if most is not None and used is None:
        report.problem(f"GPU {row['index']}: its memory in use is not known, only {row['memory.used']}", "leave `max-used` out")
    elif most is not None and used > most:
        report.problem(f"GPU {row['index']}: {used} MiB are in use before anything runs, more than {most}",
                       "end what uses it; on the host: nvidia-smi")
    return gpu


def check(options, report):
    rows = query(report)
    if not rows:
        report.problem("nvidia-smi lists no GPU", START[:4])
        raise Stop
    driver = rows[0]["driver_version"]
    if not version(driver):
        report.problem(f"the driver's version is {driver!r}", ["run nvidia-smi on the host"])
    if options["floor"] and version(driver) and version(driver) < version(options["floor"]):
        report.problem(f"driver {driver} is older than {options['floor']}, the oldest this image supports",
                       ["upgrade the host's driver", "or use an image with a lower floor, or an older CUDA"])
    gpus = [check_gpu(row, options, report) for row in rows]
    migs = instances(report) if any(gpu["mig"] for gpu in gpus) else {}
    for gpu in gpus:
        if gpu["mig"]:
            gpu["mig_devices"] = migs.get(str(gpu["index"]), [])
            if not gpu["mig_devices"]:
                report.problem(f"GPU {gpu['index']} is in MIG mode and has no MIG device", "make one on the host: nvidia-smi mig -cgi ... -C")
    report.facts.update(driver=driver, gpus=gpus)
    others = processes(report, options["max-used"] is not None)
    report.facts["processes"] = len(others)
    if others and options["max-used"] is not None:
        report.problem(f"{len(others)} other processes are on the GPUs: " + ", ".join(sorted(set(others))[:4]),
                       "run the checks on an idle GPU, or leave `max-used` out")
    names = sorted({gpu["name"] for gpu in gpus})
    report.summary = f"driver {driver}, {len(gpus)} x {', '.join(names)}"


if __name__ == "__main__":
    main(check, {"floor": release, "gpu": str, "max-used": int})
