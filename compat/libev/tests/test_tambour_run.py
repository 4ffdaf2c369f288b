"""tambour-run starts programs that can use the drop-in and rejects others with a reason.

Usage: test_tambour_run.py TAMBOUR_RUN LIBRARIES WALK [TEST...]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TAMBOUR_RUN, LIBRARIES, WALK = (Path(word).resolve() for word in sys.argv[1:4])
ENV = {**os.environ, "TAMBOUR_LIBRARIES": str(LIBRARIES)}
ENV.pop("LD_LIBRARY_PATH", None)


def run(*words: object, env=None, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(TAMBOUR_RUN), *map(str, words)], env=env or ENV, text=True,
                          capture_output=True, timeout=60, check=False, **options)


class TambourRun(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tambour-run-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def compile(self, name: str, *flags: str) -> Path:
        source = self.folder / f"{name}.c"
        source.write_text("int main(void) { return 0; }\n")
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("no compiler")
        done = subprocess.run([compiler, "-o", self.folder / name, source, *flags], check=False,
                              capture_output=True)
        if done.returncode:
            self.skipTest(f"cc {flags} fails")
        return self.folder / name

    def check_refused(self, done, reason: str, status: int = 126):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(reason, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_program_runs_on_ours(self):
        done = run(WALK, "--library")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith(str(LIBRARIES)), done.stdout)

    def test_arguments_and_status_are_the_programs(self):
        self.assertEqual(run(WALK, "no such section").returncode, 3)
        done = run("--", WALK, "versions")
        self.assertEqual(done.returncode, 0)
        self.assertIn("4.33", done.stdout)

    def test_a_search_path_that_is_there_stays(self):
        done = run(WALK, "--library", env={**ENV, "LD_LIBRARY_PATH": str(self.folder)})
        self.assertTrue(done.stdout.startswith(str(LIBRARIES)), done.stdout)

    def test_script_is_judged_by_its_interpreter(self):
        script = self.folder / "script"
        script.write_text(f"#!{WALK} --library\n")
        script.chmod(0o755)
        done = run(script)
        self.assertTrue(done.stdout.startswith(str(LIBRARIES)), done.stderr)

    def test_env_in_a_first_line_may_have_options_and_assignments(self):
        script = self.folder / "script"
        for words in ("sh", "-S sh", "-S NAME=x sh", "-S -u NAME sh"):
            script.write_text(f"#! /usr/bin/env {words}\n{WALK} --library\n")
            script.chmod(0o755)
            done = run(script)
            self.assertTrue(done.stdout.startswith(str(LIBRARIES)), f"{words}: {done.stderr}")
        script.write_text("#!/usr/bin/env -S -i sh\n")
        self.check_refused(run(script), "clears the environment")
        script.write_text("#!/usr/bin/env no-such-interpreter\n")
        self.check_refused(run(script), "no-such-interpreter not found", 127)

    def test_builtins_of_the_shell_are_no_programs(self):
        self.check_refused(run("printf"), "not linked to libev or libevent")
        self.check_refused(run("compgen"), "not found", 127)

    def test_refuses_programs_that_look_elsewhere_first(self):
        elsewhere = subprocess.run([WALK, "--library"], check=True, capture_output=True,
                                   text=True, env=ENV).stdout.strip()
        if not Path(elsewhere).is_absolute():
            self.skipTest("where the original is, is not known")
        program = self.compile("elsewhere", "-Wl,--no-as-needed", elsewhere,
                               "-Wl,--disable-new-dtags", f"-Wl,-rpath,{Path(elsewhere).parent}")
        self.check_refused(run(program), "DT_RPATH takes precedence over LD_LIBRARY_PATH")

    def test_interpreters_load_what_they_need_later(self):
        done = run("sh", "-c", f"{WALK} --library")
        self.assertTrue(done.stdout.startswith(str(LIBRARIES)), done.stderr)

    def test_names_its_folder(self):
        done = run("--libraries")
        self.assertEqual(done.stdout.strip(), str(LIBRARIES))

    def test_refuses_what_is_not_linked(self):
        self.check_refused(run(self.compile("plain")), "is not linked to libev or libevent")

    def test_refuses_static_programs(self):
        self.check_refused(run(self.compile("static", "-static")), "statically linked")

    def test_refuses_other_users_rights(self):
        program = self.folder / "set-uid"
        shutil.copy(WALK, program)
        program.chmod(0o4755)
        self.check_refused(run(program), "is set-uid or set-gid")

    def test_refuses_capabilities(self):
        program = self.folder / "capable"
        shutil.copy(WALK, program)
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        setcap = shutil.which("setcap", path=path)
        if not setcap or not shutil.which("getcap", path=path):
            self.skipTest("no setcap")
        if subprocess.run([setcap, "cap_net_raw+ep", program], capture_output=True,
                          check=False).returncode:
            self.skipTest("capabilities can't be set here")
        self.check_refused(run(program), "has file capabilities")

    def test_says_what_is_not_there(self):
        self.check_refused(run("no-such-program"), "not found", 127)
        self.check_refused(run(WALK, env={**ENV, "TAMBOUR_LIBRARIES": "/no/such"}),
                           "no such directory", 127)

    def test_help_and_mistakes(self):
        self.assertIn("Usage", run("--help").stdout)
        self.assertEqual(run().returncode, 2)
        self.assertEqual(run("--no-such-option").returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
