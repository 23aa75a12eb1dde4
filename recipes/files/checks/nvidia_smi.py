"""Does the driver answer, is it at least the floor, and are the GPUs free?

--floor=525.60.13     the oldest driver the image supports
--gpu="RTX 4090"      model that each GPU must be, by words of its name
--max-used=1024       MiB that may be in use on a GPU before anything runs
"""

import csv
import io
import re
import shutil
import subprocess
import sys

from diagnosis import SMI, START, diagnose, version
from result import Stop, main

# An old driver may lack the last ones: it is asked again without what it names.
FIELDS = ["index", "name", "uuid", "driver_version", "memory.total", "memory.used", "mig.mode.current", "compute_cap"]
OPTIONAL = {"mig.mode.current", "compute_cap"}
HIDDEN = ("[not found]", "[n/a]", "n/a", "[insufficient permissions]", "[not supported]", "[unknown error]")


def smi(report, *args):
    """What nvidia-smi prints; None when it fails, which is in the report then."""
    try:
        run = subprocess.run(["nvidia-smi", *args], capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError as err:
        report.problem("there is no nvidia-smi", START, "no NVIDIA driver is mounted into this container")
        raise Stop from err
    except subprocess.TimeoutExpired:
        report.problem("nvidia-smi does not end within a minute", ["look at the host's dmesg for Xid errors", "reboot the host"],
                       "the driver or a GPU hangs")
        raise Stop from None
    print(run.stdout, run.stderr, file=sys.stderr)
    return run


def fail(report, run):
    """An exit code of nvidia-smi, explained by its text where that is known."""
    said = [line.strip() for line in (run.stdout + run.stderr).splitlines() if line.strip()]
    known = diagnose("\n".join(said))
    meaning, todo = known or SMI.get(run.returncode, ("", ["run nvidia-smi on the host"]))
    report.problem(f"nvidia-smi ends with code {run.returncode}: {said[0] if said else 'no message'}", todo, meaning)
    raise Stop


def query(report):
    """A dict for each GPU; fields that an old driver does not know are left out."""
    fields = list(FIELDS)
    while True:
        run = smi(report, "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits")
        text = run.stdout + run.stderr
        refused = re.search(r'Field "([^"]+)" is not a valid field', text)
        if refused and refused.group(1) in OPTIONAL and refused.group(1) in fields:
            fields.remove(refused.group(1))
            continue
        if run.returncode != 0 or refused:
            fail(report, run)
        rows = [row for row in csv.reader(io.StringIO(run.stdout), skipinitialspace=True) if row]
        bad = [row for row in rows if len(row) != len(fields)]
        if bad:
            report.problem("nvidia-smi prints another form: " + ", ".join(bad[0]))
            raise Stop
        return [dict(zip(fields, (value.strip() for value in row))) for row in rows]


def number(text):
    return int(text) if re.fullmatch(r"\d+", text or "") else None


def instances(report):
    """MIG devices by the index of their GPU."""
    run = smi(report, "-L")
    out, at = {}, None
    for line in run.stdout.splitlines():
        gpu = re.match(r"GPU (\d+):", line)
        mig = re.match(r"\s+MIG (\S+)\s+Device\s+(\d+):", line)
        if gpu:
            at = gpu.group(1)
        elif mig and at is not None:
            out.setdefault(at, []).append(mig.group(1))
    return out


def processes(report):
    """Processes on the GPUs; in a container their names may be hidden."""
    run = smi(report, "--query-compute-apps=pid,process_name,used_gpu_memory", "--format=csv,noheader,nounits")
    if run.returncode != 0:
        return []
    return [row for row in csv.reader(io.StringIO(run.stdout), skipinitialspace=True) if len(row) == 3 and row[0].strip().isdigit()]


def check_gpu(row, options, report):
    """One GPU: its model, and what of its memory is taken."""
    gpu = {"index": number(row["index"]), "name": row["name"], "uuid": row["uuid"], "memory_total": number(row["memory.total"]) or 0,
           "memory_used": number(row["memory.used"]), "mig": row.get("mig.mode.current", "").lower() == "enabled"}
    capability = row.get("compute_cap", "")
    if re.fullmatch(r"\d+\.\d+", capability):
        gpu["capability"] = capability
    wanted = re.findall(r"[a-z0-9]+", options["gpu"].lower())
    has = re.findall(r"[a-z0-9]+", row["name"].lower())
    if not all(word in has for word in wanted):
        report.problem(f"GPU {row['index']} is {row['name']}, not {options['gpu']}", "run the check where that GPU is, or leave `gpu` out")
    most, used = number(options["max-used"]), gpu["memory_used"]
    if most is not None and used is not None and used > most:
        report.problem(f"GPU {row['index']}: {used} MiB are in use before anything runs, more than {most}",
                       "end what uses it; on the host: nvidia-smi")
    return gpu


def check(options, report):
    if not shutil.which("nvidia-smi"):
        report.problem("there is no nvidia-smi", START, "no NVIDIA driver is mounted into this container")
        raise Stop
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
    others = [row for row in processes(report) if row[1].strip().lower() not in HIDDEN]
    if others and number(options["max-used"]) is not None:
        report.problem(f"{len(others)} other processes are on the GPUs: " + ", ".join(sorted({row[1].strip() for row in others})[:4]),
                       "run the checks on an idle GPU, or leave `max-used` out")
    report.facts.update(driver=driver, gpus=gpus, processes=len(others))
    names = sorted({gpu["name"] for gpu in gpus})
    report.summary = f"driver {driver}, {len(gpus)} x {', '.join(names)}"


if __name__ == "__main__":
    main(check, {"floor": "", "gpu": "", "max-used": ""})
