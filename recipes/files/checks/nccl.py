"""Do all GPUs add up a tensor together?

One process for each GPU, also where there is one alone: it loads NCCL.
"""

import os
import socket
import subprocess
import sys

from diagnosis import explain
from result import Stop, main

RANK = r"""
import datetime, os, torch, torch.distributed as dist
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=120))
t = torch.full((1024,), float(rank + 1), device="cuda")
dist.all_reduce(t)
assert float(t[0]) == world * (world + 1) / 2 and float(t[-1]) == float(t[0]), t
dist.destroy_process_group()
"""


def check(options, report):
    try:
        import torch
    except Exception as err:
        report.problem(f"import torch: {type(err).__name__}: {err}".splitlines()[0], "add the recipe torch")
        raise Stop from err
    count = torch.cuda.device_count()
    if count == 0:
        explain(report, "torch.cuda", "No CUDA GPUs are available")
        raise Stop
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(count), NCCL_SOCKET_IFNAME="lo")
    ranks = [subprocess.Popen([sys.executable, "-c", RANK], env=dict(env, RANK=str(rank), LOCAL_RANK=str(rank)),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(count)]
    for rank, process in enumerate(ranks):
        said, _ = process.communicate()
        print(said, file=sys.stderr)
        if process.returncode != 0:
            lines = [line for line in said.splitlines() if line.strip()]
            text = lines[-1] if lines else f"ended with code {process.returncode}"
            if "shm" in said or "No space left" in said:
                report.problem(f"rank {rank}: {text}", ["give the container more shared memory: --shm-size=2g, or --ipc=host"])
            else:
                explain(report, f"rank {rank}", text)
    version = torch.cuda.nccl.version()
    report.summary = f"NCCL {'.'.join(map(str, version)) if isinstance(version, tuple) else version} over {count} GPUs"
    report.facts.update(nccl=str(version), gpus=count)


if __name__ == "__main__":
    main(check)
