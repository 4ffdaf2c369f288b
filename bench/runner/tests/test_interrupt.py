"""Ctrl-C and SIGTERM keep what was measured, and leave no child behind."""

import signal
import subprocess
import time

import pytest
from test_session import alive


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_was_measured_is_kept(build, number, status):
    build.behave(libev={"hang": True})
    # Shells let what they run in the background ignore Ctrl-C, which is inherited: the tests, say.
    run = subprocess.Popen(build.command("drum", "--subjects", "tambour,libev"),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    end = time.monotonic() + 20
    while not (build.bench / "grandchild.pid").exists() and time.monotonic() < end:
        time.sleep(0.05)
    run.send_signal(number)
    out, err = run.communicate(timeout=30)
    assert run.returncode == status, err
    assert "stopped early" in out
    assert "Traceback" not in err
    document = build.document()
    assert {e["subject"] for e in document["results"]} == {"tambour"}
    assert document["machine"]["notes"][0].startswith("stopped early")
    assert "stopped early" in build.page()
    assert not alive(build.bench / "child.pid") and not alive(build.bench / "grandchild.pid")
