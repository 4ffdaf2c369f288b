"""Tests the source archive: two runs write the same bytes, and the list of dependencies is that of
tools/bootstrap."""

import json
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def rows_of_bootstrap() -> set[str]:
    """The packages of the groups library and drop-ins."""
    result = subprocess.run([ROOT / "tools/bootstrap", "--list", "library", "drop-ins"],
                            capture_output=True, text=True, check=True)
    return {line.split()[1] for line in result.stdout.splitlines()}


def is_in_git() -> bool:
    """False in a source archive."""
    result = subprocess.run(["git", "-C", ROOT, "rev-parse", "--show-toplevel"],
                            capture_output=True, text=True, check=False)
    return result.returncode == 0 and Path(result.stdout.strip()) == ROOT


class Dependencies(unittest.TestCase):
    def test_the_page_has_the_packages_of_bootstrap(self) -> None:
        page = (ROOT / "docs/dependencies.md").read_text()
        packages = set(re.findall(r"^\| ([\w-]+-dev) \|", page, re.MULTILINE))
        self.assertEqual(packages, rows_of_bootstrap())


@unittest.skipUnless(is_in_git(), "the tree is not a repository")
class Archive(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.folder = Path(directory.name)
        cls.files = cls.files_of("first")

    @classmethod
    def files_of(cls, name: str) -> dict[str, bytes]:
        subprocess.run([sys.executable, "-B", ROOT / "tools/dist", "--output", cls.folder / name],
                       check=True, capture_output=True)
        return {path.name: path.read_bytes() for path in (cls.folder / name).iterdir()}

    def test_two_runs_write_the_same_bytes(self) -> None:
        self.assertEqual(len(self.files), 2)
        self.assertEqual(self.files, self.files_of("second"))

    def test_has_the_files_of_the_commit_and_their_dependencies(self) -> None:
        archive = next(name for name in self.files if name.endswith(".tar.gz"))
        folder = archive.removesuffix(".tar.gz")
        with tarfile.open(self.folder / "first" / archive) as tar:
            members = tar.getmembers()
        names = {member.name for member in members}
        self.assertIn(f"{folder}/include/tambour/tambour.h", names)
        self.assertNotIn(f"{folder}/build", names)
        self.assertEqual({(member.uid, member.gid) for member in members}, {(0, 0)})
        document = json.loads(self.files[f"{folder}.spdx.json"])
        packages = {package["SPDXID"].removeprefix("SPDXRef-") for package in document["packages"]}
        self.assertEqual(packages, rows_of_bootstrap() | {"tambour"})
        for package in document["packages"]:
            self.assertRegex(package["licenseDeclared"], r"^[A-Za-z0-9.-]+$")


if __name__ == "__main__":
    unittest.main()
