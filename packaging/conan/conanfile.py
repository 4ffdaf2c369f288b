"""The recipe for Conan 2, with the libraries of the system:

    conan create packaging/conan -o "&:shared=True"

Programs use find_package(tambour COMPONENTS ...) and tambour::core, tambour::http and so on.
"""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy
from conan.tools.system.package_manager import Apt

# The components, what each needs of the others, and the libraries of the system.
COMPONENTS = {
    "core": ([], ["uring", "pthread"]),
    "dns": (["core"], []),
    "tls": (["core"], ["ssl", "crypto"]),
    "client": (["dns", "tls"], []),
    "http": (["client"], ["z", "brotlienc", "brotlidec", "zstd", "psl"]),
    "sim": (["dns"], []),
}


class Tambour(ConanFile):
    name = "tambour"
    description = "Event loop and networking library"
    license = "MIT"
    topics = ("event-loop", "networking", "coroutines", "http")
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def set_version(self):
        header = Path(self.recipe_folder, "../../include/tambour/base/version.h").read_text()
        self.version = re.search(r'version = "([\d.]+)"', header)[1]

    def export_sources(self):
        root = Path(self.recipe_folder, "../..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*",
                        "tools/tambour*", "tools/bpftrace/*", "tools/template/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def validate(self):
        if self.settings.compiler.get_safe("cppstd"):
            check_min_cppstd(self, 23)

    def system_requirements(self):
        Apt(self).install(["liburing-dev", "libssl-dev", "zlib1g-dev", "libbrotli-dev",
                           "libzstd-dev", "libpsl-dev"])

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["BUILD_SHARED_LIBS"] = bool(self.options.shared)
        for part in ("TESTS", "BENCH", "EXAMPLES", "DROP_INS"):
            toolchain.cache_variables[f"TAMBOUR_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install(component="library")
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "tambour")
        self.cpp_info.set_property("cmake_target_name", "tambour::tambour")
        for name, (needs, libraries) in COMPONENTS.items():
            component = self.cpp_info.components[name]
            component.set_property("cmake_target_name", f"tambour::{name}")
            component.set_property("pkg_config_name", f"tambour-{name}")
            component.libs = [f"tambour-{name}"]
            component.requires = needs
            component.system_libs = [] if self.options.shared else libraries
