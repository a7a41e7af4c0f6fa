# Copyright CERE maintainers. SPDX-License-Identifier: (Apache-2.0 OR MIT)
"""CERE for Spack: put this folder, as packages/cere, into a repository of your own (`spack repo create`)."""

from spack.package import *


class Cere(MakefilePackage):
    """Takes programs apart into codelets: hot loops and OpenMP regions that run alone, with their memory and a verdict."""

    homepage = "https://localhost/cere"
    # Set this to where your copy of the repository is.
    git = "https://localhost/cere.git"

    license("Apache-2.0 OR MIT")

    version("main", branch="main")

    variant("fortran", default=True, description="Studies programs in Fortran, by flang")

    depends_on("cxx", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("zstd")
    depends_on("llvm@22 +clang +lld targets=all", type=("build", "link", "run"))
    depends_on("llvm@22 +flang", when="+fortran", type=("build", "link", "run"))

    requires("platform=linux")
    requires("target=x86_64:")

    # Spack's LLVM has its programs without a version in their names; CERE looks for clang-22 and the like.
    programs = (
        "clang",
        "clang++",
        "clang-format",
        "flang",
        "ld.lld",
        "llvm-ar",
        "llvm-config",
        "llvm-dis",
        "llvm-dwarfdump",
        "llvm-mca",
        "llvm-objcopy",
        "opt",
    )

    def _link_programs(self, directory):
        mkdirp(directory)
        llvm = self.spec["llvm"].prefix.bin
        for program in self.programs:
            found = join_path(llvm, program)
            link = join_path(directory, f"{program}-22")
            if os.path.exists(found) and not os.path.exists(link):
                symlink(found, link)

    def setup_build_environment(self, env):
        llvm = self.spec["llvm"].prefix
        env.set("LLVM_SYS_221_PREFIX", llvm)
        env.prepend_path("PATH", join_path(self.stage.path, "llvm-22"))

    def build(self, spec, prefix):
        self._link_programs(join_path(self.stage.path, "llvm-22"))
        # `make` would install packages of Debian.
        Executable("cargo")("build", "--release")

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")
        self._link_programs(prefix.libexec.cere)

    def setup_run_environment(self, env):
        env.prepend_path("PATH", self.prefix.libexec.cere)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.cere)("--version")
