"""Ctrl-C and SIGTERM keep the results so far and leave no process behind."""

import signal
import subprocess
import time

import pytest
from test_session import survives


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_results_so_far_are_written(build, number, status):
    build.behave(libev={"hang": 2})  # in the second round
    # A shell makes background processes ignore SIGINT, which the tests may have inherited.
    run = subprocess.Popen(build.command("drum", "--subjects", "tambour,libev"),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    end = time.monotonic() + 60
    files = [build.bench / "child.pid", build.bench / "grandchild.pid"]
    while not all(file.exists() for file in files) and time.monotonic() < end:
        time.sleep(0.05)
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    assert run.returncode == status, err
    assert "stopped early" in out
    assert "Traceback" not in err
    document = build.document()
    assert {e["subject"] for e in document["results"]} == {"tambour", "libev", "tambour-aa"}
    assert document["machine"]["notes"][0].startswith("stopped early")
    assert "stopped early" in build.page()
    assert not any(map(survives, files))
