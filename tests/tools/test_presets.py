"""Verifies that the preset `dev` compiles each source alone, so that clangd can open it, and that
the presets, the workflow and the container file agree with the scripts that do the work."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Compiled by other builds: without TLS, by MakeMaker, with libFuzzer, and outside of the tree.
ELSEWHERE = re.compile(r"src/tls/without_openssl|tests/transports/without_tls|bindings/perl/"
                       r"|tests/package/compile_errors|tests/fuzz/fuzz_"
                       r"|tests/package/(component|consumer|module)|bench/")


def sources() -> set[str]:
    # In a source archive there is no Git repository.
    found = {path.relative_to(ROOT).as_posix() for folder in ("src", "tests", "compat", "examples")
             for path in (ROOT / folder).rglob("*.c*") if path.suffix in (".c", ".cpp")}
    return {path for path in found if not ELSEWHERE.match(path)}


class Presets(unittest.TestCase):
    def test_dev_compiles_each_source_alone(self) -> None:
        with tempfile.TemporaryDirectory() as build:
            subprocess.run([os.environ.get("CMAKE", "cmake"), "--preset", "dev", "-B", build],
                           cwd=ROOT, capture_output=True, check=True)
            commands = json.loads((Path(build) / "compile_commands.json").read_text())
        compiled = {Path(command["file"]).relative_to(ROOT).as_posix() for command in commands
                    if Path(command["file"]).is_relative_to(ROOT)}
        self.assertEqual(sources() - compiled, set())
        self.assertFalse([command["command"] for command in commands
                          if "cmake_pch" in command["command"]])

    def test_each_test_preset_has_a_build(self) -> None:
        presets = json.loads((ROOT / "CMakePresets.json").read_text())
        configured = {preset["name"] for preset in presets["configurePresets"]}
        built = {preset["configurePreset"] for preset in presets["buildPresets"]}
        tested = {preset["configurePreset"] for preset in presets["testPresets"]
                  if not preset.get("hidden")}
        self.assertEqual(configured - {"base"}, built)
        self.assertLessEqual(tested, built)
        self.assertGreaterEqual(tested, {"release", "dev", "asan", "tsan"})


class Automation(unittest.TestCase):
    """Nothing may be decided in a file that developers do not run."""

    def test_the_workflow_only_calls_scripts(self) -> None:
        text = (ROOT / ".github/workflows/ci.yml").read_text()
        steps = re.findall(r"^ +(?:- )?run: *(.*)$", text, re.MULTILINE)
        self.assertEqual(steps, ["tools/bootstrap", ".ci/run"])

    def test_the_container_only_calls_scripts(self) -> None:
        lines = (ROOT / "Containerfile").read_text().splitlines()
        self.assertEqual([line for line in lines if line.startswith(("RUN", "CMD", "ENTRYPOINT"))],
                         ["RUN /tambour/tools/bootstrap", 'CMD [".ci/run"]'])


if __name__ == "__main__":
    unittest.main()
