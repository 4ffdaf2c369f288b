"""Tests tools/bootstrap with fakes of the system's package tools, so that nothing is installed.

The fakes keep the list of installed packages in one file and log each apt-get call to another.
"""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Standard programs that the script may use; PATH contains only these and the fakes.
ORDINARY = ["awk", "bash", "cat", "cut", "env", "grep", "mktemp", "rm", "sed", "tail"]

DPKG_QUERY = """#!/bin/bash
for package in "$@"; do
  if grep -qx "$package" "$STATE/installed"; then echo "ii |$package|"; fi
done
exit 1
"""
APT_GET = """#!/bin/bash
echo "$*" >>"$STATE/calls"
for word in "$@"; do
  case $word in
    update) : >"$STATE/updated" ;;
    install) for package in "$@"; do echo "$package" >>"$STATE/installed"; done ;;
  esac
done
"""
# As in a fresh container, apt knows no package before its first update.
APT_CACHE = """#!/bin/bash
test -e "$STATE/updated" && test "$2" != "$UNAVAILABLE"
"""


class Bootstrap(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        (self.directory / "bin").mkdir()
        for name in ORDINARY:
            found = next(Path(place, name) for place in ("/usr/bin", "/bin")
                         if Path(place, name).exists())
            (self.directory / "bin" / name).symlink_to(found)
        self.fake("id", "#!/bin/bash\necho ${FAKE_UID-0}\n")
        for name in ("installed", "calls"):
            (self.directory / name).touch()

    def fake(self, name: str, text: str = "#!/bin/bash\n") -> None:
        path = self.directory / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def fake_debian(self) -> None:
        self.fake("dpkg-query", DPKG_QUERY)
        self.fake("apt-get", APT_GET)
        self.fake("apt-cache", APT_CACHE)

    def run_bootstrap(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [ROOT / "tools/bootstrap", *arguments], capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
            env={"PATH": str(self.directory / "bin"), "STATE": str(self.directory),
                 "TMPDIR": str(self.directory), **environment})

    def calls(self) -> list[str]:
        return (self.directory / "calls").read_text().splitlines()

    def test_lists_every_package_with_a_reason(self) -> None:
        result = self.run_bootstrap("--list")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = result.stdout.splitlines()
        self.assertIn("liburing-dev", result.stdout)
        for row in rows:
            group, package, reason = row.split(maxsplit=2)
            self.assertTrue(group and package and reason, row)

    def test_installs_missing_packages_once(self) -> None:
        self.fake_debian()
        (self.directory / "installed").write_text("g++\ncmake\nmake\n")
        result = self.run_bootstrap("build", "library")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("liburing-dev        the io_uring backend", result.stdout)
        self.assertEqual(len(self.calls()), 2)
        self.assertTrue(self.calls()[0].endswith("update"))
        self.assertIn("--no-install-recommends ninja-build pkg-config liburing-dev",
                      self.calls()[1])
        again = self.run_bootstrap("--quiet", "build", "library")
        self.assertEqual((again.returncode, again.stdout), (0, ""))
        self.assertEqual(len(self.calls()), 2, "apt-get ran although nothing was missing")

    def test_does_not_update_complete_package_lists(self) -> None:
        self.fake_debian()
        (self.directory / "updated").touch()
        self.assertEqual(self.run_bootstrap("library").returncode, 0)
        self.assertEqual(len(self.calls()), 1)

    def test_continues_without_a_package_that_the_release_lacks(self) -> None:
        self.fake_debian()
        needed = self.run_bootstrap("build", UNAVAILABLE="ninja-build")
        self.assertEqual(needed.returncode, 1)
        self.assertIn("ninja-build", needed.stderr)
        self.assertIn("cmake", self.calls()[-1])
        peer = self.run_bootstrap("peers", UNAVAILABLE="libev-dev")
        self.assertEqual(peer.returncode, 0, peer.stderr)
        self.assertIn("these packages are optional", peer.stderr)

    def test_builds_programs_with_the_compiler_that_it_has_installed(self) -> None:
        self.fake_debian()
        self.fake("go", '#!/bin/bash\ngrep -qx golang-go "$STATE/installed" &&\n'
                        '  echo "go $*" >>"$STATE/calls"\n')
        result = self.run_bootstrap("tests")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(result.stderr, "")
        self.assertTrue(self.calls()[-1].startswith("go install "), self.calls())

    def test_uses_sudo_if_not_root(self) -> None:
        self.fake_debian()
        self.fake("sudo", '#!/bin/bash\necho sudo >>"$STATE/calls"\nshift\n"$@"\n')
        self.fake("true")
        result = self.run_bootstrap("library", FAKE_UID="1000")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("sudo", self.calls())

    def test_prints_packages_without_root_and_sudo(self) -> None:
        self.fake_debian()
        result = self.run_bootstrap("library", FAKE_UID="1000")
        self.assertEqual(result.returncode, 1)
        self.assertIn("ask the administrator", result.stderr)
        self.assertIn("liburing-dev", result.stderr)
        self.assertEqual(self.calls(), [])

    def test_probes_for_dependencies_on_other_systems(self) -> None:
        result = self.run_bootstrap("library")
        self.assertEqual(result.returncode, 1)
        self.assertIn("not a Debian system", result.stderr)
        self.fake("pkg-config")
        self.assertEqual(self.run_bootstrap("library").returncode, 0)

    def test_an_installation_requires_only_the_packages_of_the_library(self) -> None:
        environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
        recipe = subprocess.run(["make", "--dry-run", "install", "PREFIX=/nowhere"], cwd=ROOT,
                                env=environment, capture_output=True, text=True, check=True)
        self.assertEqual(re.findall(r"tools/bootstrap (.*)", recipe.stdout),
                         ["--quiet build library"])

    def test_the_readme_names_the_packages_of_the_library(self) -> None:
        listed = subprocess.run([ROOT / "tools/bootstrap", "--list", "build", "library"],
                                capture_output=True, text=True, check=True).stdout
        packages = {row.split()[1] for row in listed.splitlines()} - {"make"}
        readme = (ROOT / "README.md").read_text().replace("\\\n", "")
        command = re.search(r"apt-get install (g\+\+ .*)", readme)
        self.assertIsNotNone(command)
        self.assertEqual(set(command.group(1).split()), packages)

    def test_rejects_an_unknown_group(self) -> None:
        result = self.run_bootstrap("everything")
        self.assertEqual(result.returncode, 2)
        self.assertIn("unknown group", result.stderr)


if __name__ == "__main__":
    unittest.main()
