"""Importing needs no name that only POSIX systems have; on Windows all commands but the server
run."""

from __future__ import annotations

import subprocess
import sys

# Without these, modules import as they would on Windows; modules of the standard library and of
# other packages know themselves where they are.
PROGRAM = """
import importlib, importlib.util, os, pkgutil, signal, sys
import asyncio, multiprocessing, pyarrow, scipy.stats, sklearn.linear_model, subprocess, tempfile
import torch, torch.distributed, uvicorn
from tercet import __path__ as path

GONE = {
    os: ["fork", "forkpty", "getuid", "geteuid", "getpgid", "killpg", "mkfifo", "sched_getaffinity",
         "setsid", "uname", "wait", "WNOHANG"],
    signal: ["SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCHLD", "pthread_sigmask",
             "SIG_BLOCK", "SIG_UNBLOCK", "alarm", "setitimer"],
}
INSIDE = ("importlib", "_frozen_importlib")
MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"}

def origin(frame):
    return frame.f_globals.get("__name__", "")

def guard(module, names):
    held = {name: module.__dict__.pop(name) for name in names if hasattr(module, name)}
    def missing(name):
        caller = sys._getframe(1)
        if name in held and not origin(caller).startswith("tercet"):
            return held[name]
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
    module.__getattr__ = missing

class NoModules:
    def find_spec(self, name, where=None, target=None):
        if name not in MODULES:
            return None
        frame = sys._getframe()
        while origin(frame).startswith(INSIDE) or frame.f_code.co_name == "find_spec":
            frame = frame.f_back
        if origin(frame).startswith("tercet"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for module, names in GONE.items():
    guard(module, names)
for name in MODULES:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, NoModules())
for module in pkgutil.walk_packages(path, "tercet."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
        print(module.name)
"""


def test_all_modules_import_without_posix_names() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "tercet.serve.workers" in result.stdout.split()
