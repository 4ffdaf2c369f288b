"""A suite is one small file: a suite that uses all defaults of the base class."""

import subprocess
import sys

from conftest import BENCH

ECHO = '''
from .. import subjects
from ..charts import Lines
from ..model import Metric, Parameter
from ..suite import Suite


class Echo(Suite):
    name, title, program = "echo", "Echo", "timers"
    what, how = "Messages per second.", "Counted."
    parameters = (Parameter("timers", "how many", (10, 100)),)
    metrics = (Metric("arm_ns", "1/s", "messages", better="more"),)
    subjects = subjects.pick("tambour", "libev")
    rounds = 2
    quoted = "median"

    def charts(self, figures):
        return [Lines("echo", "", "Echo", "arm_ns", "timers", figures.cells, "n", "1/s")]

    def tables(self, figures):
        return [("Published values", ["name", "published"], [["libev", "42"]])]


SUITE = Echo()
'''


def test_one_file_adds_a_suite(build, tmp_path):
    """A copy of the runner with one more file measures and reports the new suite."""
    subprocess.run(["cp", "-r", str(BENCH / "run"), str(BENCH / "runner"), str(tmp_path)],
                   check=True)
    (tmp_path / "runner" / "suites" / "echo.py").write_text(ECHO)
    build.behave(libev={"factor": 2.0})
    done = subprocess.run([sys.executable, str(tmp_path / "run"), "echo", "--build",
                           str(build.root)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {len(e["samples"]) for e in build.document()["results"]} == {2}
    assert (build.root / "bench-report" / "echo.svg").exists()
    assert "Published values" in build.page()
    assert "<tr><th>libev</th><td class=best>" in build.page()  # more is better here
