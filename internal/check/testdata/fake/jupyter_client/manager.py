import os
import subprocess
import sys

from fakes import fault, told


class NoSuchKernel(KeyError):
    def __str__(self):
        return "No such kernel named " + self.args[0]


class Kernel:
    def execute_interactive(self, code, timeout, output_hook):
        fault("execute")
        env = dict(os.environ, MPLBACKEND=told("inline", "module://matplotlib_inline.backend_inline"))
        run = subprocess.run([told("kernel", sys.executable), "-c", code], env=env, capture_output=True, text=True, check=False)
        if run.returncode:
            name, _, value = run.stderr.strip().splitlines()[-1].partition(": ")
            output_hook({"msg_type": "error", "content": {"ename": name, "evalue": value}})
        output_hook({"msg_type": "stream", "content": {"name": "stdout", "text": run.stdout}})

    def stop_channels(self):
        pass

    def shutdown_kernel(self, now):
        pass


def start_new_kernel(kernel_name, startup_timeout):
    if told("no kernel"):
        raise NoSuchKernel(kernel_name)
    fault("start")
    return Kernel(), Kernel()
