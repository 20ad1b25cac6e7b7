"""What the timing scripts have in common: settings come in as one JSON argument, one line of JSON a peer goes out.

A line is {"peer": ..., "seconds": [...], "version": ...} or {"peer": ..., "error": ...}. Each peer has a process of its
own, so that thread pools do not compete, memory is given back, and a crash is one error line.
"""

import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace


def timed(action, repeats):
    """Seconds of each repeat, after one call to warm up."""
    action()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return seconds


def main(peers, defaults, measure):
    """`peers` maps names to (module, function); `measure` takes such a function and the settings."""
    try:
        settings = {**defaults, **json.loads(sys.argv[1])}
    except (IndexError, TypeError, ValueError) as error:
        sys.exit(f"expected one JSON object as argument: {type(error).__name__}: {error}")
    names = settings.get("peers", list(peers))
    if len(names) == 1:
        _print_line(_report(names[0], peers, settings, measure))
        return
    for name in names:
        command = [sys.executable, sys.argv[0], json.dumps({**settings, "peers": [name]})]
        child = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if not child.stdout:
            _print_line({"peer": name, "error": f"its process ended with exit code {child.returncode}"})
        sys.stdout.write(child.stdout)
        sys.stdout.flush()


def _report(name, peers, settings, measure):
    _die_with_parent()
    _send_prints_to_stderr()
    library = name.split("_")[0]
    try:
        if name not in peers:
            raise ValueError(f"there is no such peer; there are {', '.join(peers)}")
        _limit_threads(library, settings["threads"])
        module, function = peers[name]
        peer = getattr(importlib.import_module(module), function)
        seconds = measure(peer, SimpleNamespace(**settings))
        version = sys.modules[library].__version__.split("+")[0]
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return {"peer": name, "error": f"{type(error).__name__}: {lines[0]}"}
    return {"peer": name, "seconds": seconds, "version": f"{library} {version}"}


def _limit_threads(library, threads):
    if library == "torch":
        import torch

        torch.set_num_threads(threads)
    else:
        # XLA makes as many threads as there are cores that it may use.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def _die_with_parent():
    """Who stops a benchmark does not want a peer to go on."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _send_prints_to_stderr():
    """Also those of libraries in C++, which do not know sys.stdout."""
    global _results
    _results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)


_results = sys.stdout


def _print_line(line):
    print(json.dumps(line), file=_results, flush=True)
