"""tools/bootstrap, run with fakes in place of the system's programs, so that nothing is installed.

The fakes keep the installed packages in one file and write every apt-get call into another.
"""

import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What the script needs of any system; all else is looked for in the folder of fakes alone.
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
# A fresh container: apt knows nothing before its first update.
APT_CACHE = """#!/bin/bash
test -e "$STATE/updated" && test "$2" != "$UNAVAILABLE"
"""


class Bootstrap(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "bin").mkdir()
        for name in ORDINARY:
            found = next(Path(place, name) for place in ("/usr/bin", "/bin")
                         if Path(place, name).exists())
            (self.folder / "bin" / name).symlink_to(found)
        self.fake("id", "#!/bin/bash\necho ${FAKE_UID-0}\n")
        for name in ("installed", "calls"):
            (self.folder / name).touch()

    def fake(self, name: str, text: str = "#!/bin/bash\n") -> None:
        path = self.folder / "bin" / name
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
            env={"PATH": str(self.folder / "bin"), "STATE": str(self.folder),
                 "TMPDIR": str(self.folder), **environment})

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def test_lists_every_package_with_a_reason(self) -> None:
        result = self.run_bootstrap("--list")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = result.stdout.splitlines()
        self.assertIn("liburing-dev", result.stdout)
        for row in rows:
            group, package, why = row.split(maxsplit=2)
            self.assertTrue(group and package and why, row)

    def test_installs_once_what_is_missing(self) -> None:
        self.fake_debian()
        (self.folder / "installed").write_text("g++\ncmake\nmake\n")
        result = self.run_bootstrap("build", "library")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("liburing-dev        the io_uring backend", result.stdout)
        self.assertEqual(len(self.calls()), 2)
        self.assertTrue(self.calls()[0].endswith("update"))
        self.assertIn("--no-install-recommends ninja-build pkg-config python3 liburing-dev",
                      self.calls()[1])
        again = self.run_bootstrap("--quiet", "build", "library")
        self.assertEqual((again.returncode, again.stdout), (0, ""))
        self.assertEqual(len(self.calls()), 2, "apt-get was started though nothing was missing")

    def test_does_not_update_lists_that_know_everything(self) -> None:
        self.fake_debian()
        (self.folder / "updated").touch()
        self.assertEqual(self.run_bootstrap("library").returncode, 0)
        self.assertEqual(len(self.calls()), 1)

    def test_a_package_that_the_release_lacks(self) -> None:
        self.fake_debian()
        needed = self.run_bootstrap("build", UNAVAILABLE="ninja-build")
        self.assertEqual(needed.returncode, 1)
        self.assertIn("ninja-build", needed.stderr)
        self.assertIn("cmake", self.calls()[-1])
        peer = self.run_bootstrap("peers", UNAVAILABLE="libev-dev")
        self.assertEqual(peer.returncode, 0, peer.stderr)
        self.assertIn("none of these is needed", peer.stderr)

    def test_uses_sudo_where_not_root(self) -> None:
        self.fake_debian()
        self.fake("sudo", '#!/bin/bash\necho sudo >>"$STATE/calls"\nshift\n"$@"\n')
        self.fake("true")
        result = self.run_bootstrap("library", FAKE_UID="1000")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("sudo", self.calls())

    def test_without_root_and_sudo(self) -> None:
        self.fake_debian()
        result = self.run_bootstrap("library", FAKE_UID="1000")
        self.assertEqual(result.returncode, 1)
        self.assertIn("ask for", result.stderr)
        self.assertIn("liburing-dev", result.stderr)
        self.assertEqual(self.calls(), [])

    def test_elsewhere_what_can_be_used_is_not_missing(self) -> None:
        result = self.run_bootstrap("library")
        self.assertEqual(result.returncode, 1)
        self.assertIn("not a Debian system", result.stderr)
        self.fake("pkg-config")
        self.assertEqual(self.run_bootstrap("library").returncode, 0)

    def test_unknown_group(self) -> None:
        result = self.run_bootstrap("everything")
        self.assertEqual(result.returncode, 2)
        self.assertIn("unknown group", result.stderr)


if __name__ == "__main__":
    unittest.main()
