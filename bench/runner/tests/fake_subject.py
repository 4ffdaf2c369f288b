#!/usr/bin/python3 -IS
"""A subject that behaves as configured in behaviour.json beside it, and logs each run."""

import json
import os
import resource
import sys
import time

suite, peer = os.path.basename(sys.argv[0]).split("-", 1)
here = os.path.dirname(os.path.abspath(sys.argv[0]))
words = sys.argv[1:]
backend = os.environ.get("TAMBOUR_BACKEND", "epoll")
with open(f"{here}/spawned.log", "a") as log:
    print(json.dumps({
        "suite": suite, "peer": peer, "words": words, "env": dict(os.environ),
        "cpus": sorted(os.sched_getaffinity(0)),
        "runners_cpus": sorted(os.sched_getaffinity(os.getppid())),
        "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    }), file=log)
with open(f"{here}/behaviour.json") as file:
    does = json.load(file).get(peer, {})


def option(name):
    return int(words[words.index(name) + 1])


def run_number():
    """How often this program has been run, this time included."""
    with open(f"{here}/spawned.log") as log:
        return sum(json.loads(line)["peer"] == peer for line in log)


if "hang" in does and run_number() >= does["hang"]:
    child = os.fork()  # a grandchild, which must be killed too
    path = f"{here}/{'grandchild' if child == 0 else 'child'}.pid"
    with open(f"{path}.part", "w") as file:
        print(os.getpid(), file=file)
    os.rename(f"{path}.part", path)  # complete, even if the process is killed meanwhile
    time.sleep(1000)
if "fail" in does:
    print("warning: of no interest\n" + does["fail"], file=sys.stderr)
    sys.exit(1)
if "say" in does:
    print(does["say"])
    sys.exit(0)
if "slow" in does:
    time.sleep(does["slow"])
factor = does.get("factor", 1.0)
if "noise" in does:  # multiplies each run by another factor, the same sequence every time
    factor *= 1 + does["noise"] * (run_number() * 7 % 11 - 5) / 5
if suite == "drum":
    iterations = [{"event_ns": 1000.0 * factor + 10 * i, "events": option("--writes"),
                   "round_us": 10_000.0 * factor + option("--pairs") + 100 * i}
                  for i in range(option("--iterations"))]
else:
    iterations = [{name: 100.0 * factor + i for name in
                   ("arm_ns", "reset_ns", "cancel_ns", "expire_ns",
                    "reset_whole_ns", "cancel_whole_ns", "request_ns")}
                  for i in range(option("--iterations"))]
print("a line that is not the result")
print(json.dumps({"subject": peer, "version": "1.2", "backend": does.get("backend", backend),
                  "iterations": iterations}))
