"""Do all GPUs add up a tensor together?

One process for each GPU, also where there is one alone: it loads NCCL.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time

from diagnosis import explain, load_torch, start_cuda
from result import main

RANK = r"""
import datetime, os, torch, torch.distributed as dist
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=120))
t = torch.full((1024,), float(rank + 1), device="cuda")
dist.all_reduce(t)
want = world * (world + 1) / 2
if float(t[0]) != want or float(t[-1]) != want:
    raise SystemExit(f"the sum is {float(t[0])}, not {want}")
dist.destroy_process_group()
"""


def all_ranks(env, count):
    """Run all ranks and give those that fail: (rank, exit code, what it printed). When one
    fails the others, which wait for it, are ended."""
    ranks = []
    for rank in range(count):
        said = tempfile.TemporaryFile()
        ranks.append((subprocess.Popen([sys.executable, "-c", RANK], env=dict(env, RANK=str(rank), LOCAL_RANK=str(rank)),
                                       cwd="/", stdout=sys.stderr, stderr=said), said))
    while any(process.poll() is None for process, _ in ranks) and not any(process.poll() for process, _ in ranks):
        time.sleep(0.05)
    failed = []
    for rank, (process, said) in enumerate(ranks):
        ended = process.poll()
        process.kill()
        process.wait()
        said.seek(0)
        text = said.read().decode(errors="replace")
        print(text, file=sys.stderr)
        if ended:
            failed.append((rank, ended, text))
    return failed


def check(options, report):
    torch = load_torch(report)
    count = torch.cuda.device_count()
    if count == 0:
        start_cuda(torch, report)  # says why
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(count), NCCL_SOCKET_IFNAME="lo")
    for rank, code, said in all_ranks(env, count):
        lines = [line for line in said.splitlines() if line.strip()]
        text = lines[-1] if lines else f"ended with code {code}"
        if re.search(r"shared memory|/dev/shm|No space left", said):
            report.problem(f"rank {rank}: {text}", ["give the container more shared memory: --shm-size=2g, or --ipc=host"])
        else:
            explain(report, f"rank {rank}", text)
    version = torch.cuda.nccl.version()
    report.summary = f"NCCL {'.'.join(map(str, version)) if isinstance(version, tuple) else version} over {count} GPUs"
    report.facts.update(nccl=str(version), gpus=count)


if __name__ == "__main__":
    main(check)
