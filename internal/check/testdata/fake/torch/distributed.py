"""A stand-in for torch.distributed: each rank knows the sum without asking."""

import os
import sys
import time

from fakes import told


def init_process_group(backend, timeout):
    rank = os.environ["RANK"]
    if rank in told("ranks", {}):
        sys.exit(told("ranks")[rank])
    if told("ranks"):
        time.sleep(300)  # the others wait for it


def all_reduce(t):
    n = int(os.environ["WORLD_SIZE"])
    t.value = 1 if told("wrong") == "sum" else n * (n + 1) / 2


def destroy_process_group():
    pass
