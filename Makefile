CARGO ?= cargo
PREFIX ?= /usr/local
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# Rust's own library brings debug data and bitcode into archives.
SLIM = llvm-objcopy-22 --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd
TARGET = $(or $(CARGO_TARGET_DIR),target)
BUILT = $(TARGET)/release
# Another machine's: `make deb DEB_ARCH=arm64`.
DEB_ARCH ?= $(shell dpkg --print-architecture 2>/dev/null)
ARM = aarch64-unknown-linux-gnu
BUILT_ARM = $(TARGET)/$(ARM)/release

.PHONY: all setup build cross arm64 check test python-test integrations-test pictures install install-timer install-cmake deb demo bench fuzz book

all: build

setup:
	@scripts/setup

# What is installed. The tests build the rest.
build: setup cross
	$(CARGO) build --release

# The runtime of replays on AArch64, made here.
cross: setup
	@scripts/cross $(CARGO) build --release -p cere-runtime --target $(ARM)

# The whole tool for AArch64, made here; without what captures and counts, which is for x86-64.
arm64: setup
	@scripts/cross $(CARGO) build --release --target $(ARM) $(addprefix -p cere-,cli pass stay exec runtime timer)

# In the profile of the build: what it links to, the C++ of the pass among it, is compiled once.
check: setup
	$(CARGO) fmt --all --check
	clang-format-22 --dry-run --Werror cere-pass/src/*.cpp cere-pass/src/*.h
	$(CARGO) clippy --workspace --all-targets --release -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --release

test: check cross
	$(CARGO) build --release --workspace
	CARGO_PROFILE_RELEASE_OPT_LEVEL=0 scripts/cross $(CARGO) build --release -p cere-cli --target $(ARM)
	@scripts/zig
	@scripts/axe >/dev/null
	@scripts/python-test
	@scripts/integrations-test
	@scripts/pictures --check
	$(CARGO) test --workspace --release

# The Python package: its wheel in an environment of its own, made here.
python-test: build
	@scripts/python-test

# What is in integrations/, in the tools that it is for.
integrations-test: build
	@scripts/integrations-test

# The pictures of the documents, from what the commands print.
pictures: build
	@scripts/pictures

# The command finds the rest in ../lib/cere. Needs no build tools but LLVM's, which CERE itself needs, so that `sudo make install` works
# after `make`.
install: install-timer install-cmake
	@test -x $(BUILT)/cere || { echo "install: there is no $(BUILT)/cere: run make first" >&2; exit 1; }
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/lib/cere"
	install -m 755 $(BUILT)/cere "$(DESTDIR)$(PREFIX)/bin/cere"
	install -m 755 $(BUILT)/libcere_pass.so $(BUILT)/libcere_preload.so $(BUILT)/libcere_counted.so $(BUILT)/libcere_stay.so $(BUILT)/libcere_exec.so "$(DESTDIR)$(PREFIX)/lib/cere"
	$(SLIM) $(BUILT)/libcere_runtime.a "$(DESTDIR)$(PREFIX)/lib/cere/libcere_runtime.a"
	chmod 644 "$(DESTDIR)$(PREFIX)/lib/cere/libcere_runtime.a"
	test ! -e $(BUILT_ARM)/libcere_runtime.a || { \
	  install -d "$(DESTDIR)$(PREFIX)/lib/cere/aarch64-linux-gnu" && \
	  $(SLIM) $(BUILT_ARM)/libcere_runtime.a "$(DESTDIR)$(PREFIX)/lib/cere/aarch64-linux-gnu/libcere_runtime.a" && \
	  chmod 644 "$(DESTDIR)$(PREFIX)/lib/cere/aarch64-linux-gnu/libcere_runtime.a"; }
	$(BUILT)/cere manual "$(DESTDIR)$(PREFIX)/share"
	install -d "$(DESTDIR)$(PREFIX)/share/cere/schemas"
	install -m 644 docs/schemas/*.json "$(DESTDIR)$(PREFIX)/share/cere/schemas"

# The timers for C. The prefix of cere.pc is where the file is.
install-timer:
	@test -e $(BUILT)/libcere_timer.so || { echo "install: there is no $(BUILT)/libcere_timer.so: run make first" >&2; exit 1; }
	install -d "$(DESTDIR)$(PREFIX)/include" "$(DESTDIR)$(PREFIX)/lib/pkgconfig"
	install -m 644 crates/timer/include/cere.h "$(DESTDIR)$(PREFIX)/include"
	$(SLIM) $(BUILT)/libcere_timer.a "$(DESTDIR)$(PREFIX)/lib/libcere_timer.a"
	install -m 644 $(BUILT)/libcere_timer.so "$(DESTDIR)$(PREFIX)/lib"
	chmod 644 "$(DESTDIR)$(PREFIX)/lib/libcere_timer.a"
	sed 's/@VERSION@/$(VERSION)/' crates/timer/cere.pc.in > "$(DESTDIR)$(PREFIX)/lib/pkgconfig/cere.pc"
	chmod 644 "$(DESTDIR)$(PREFIX)/lib/pkgconfig/cere.pc"

# The package that find_package(CERE) finds.
install-cmake:
	install -d "$(DESTDIR)$(PREFIX)/lib/cmake/CERE"
	install -m 644 integrations/cmake/CEREConfig.cmake "$(DESTDIR)$(PREFIX)/lib/cmake/CERE"
	sed 's/@VERSION@/$(VERSION)/' integrations/cmake/CEREConfigVersion.cmake.in > "$(DESTDIR)$(PREFIX)/lib/cmake/CERE/CEREConfigVersion.cmake"
	chmod 644 "$(DESTDIR)$(PREFIX)/lib/cmake/CERE/CEREConfigVersion.cmake"

# A Debian package, in `debian` beside what was built: for this machine, or for AArch64. This machine's command makes the documents.
ifeq ($(DEB_ARCH),arm64)
DEB_BUILT = $(BUILT_ARM)
DEB_TARGET = --target $(ARM)
deb: arm64
else
DEB_BUILT = $(BUILT)
endif
DEB_SHARE = $(abspath $(DEB_BUILT))/deb-share
deb: build
	@command -v cargo-deb >/dev/null || { echo "deb: installing cargo-deb" >&2; $(CARGO) install cargo-deb --locked; }
	rm -rf $(DEB_SHARE)
	$(MAKE) --no-print-directory install-timer DESTDIR= PREFIX=$(DEB_SHARE)/timer BUILT=$(DEB_BUILT)
	$(MAKE) --no-print-directory install-cmake DESTDIR= PREFIX=$(DEB_SHARE)
	$(SLIM) $(DEB_BUILT)/libcere_runtime.a $(DEB_SHARE)/libcere_runtime.a
	install -d $(DEB_SHARE)/aarch64-linux-gnu
	$(SLIM) $(BUILT_ARM)/libcere_runtime.a $(DEB_SHARE)/aarch64-linux-gnu/libcere_runtime.a
	$(BUILT)/cere manual $(DEB_SHARE)
	gzip --best --no-name $(DEB_SHARE)/man/man1/*
	$(CARGO) deb --package cere-cli --no-build --variant $(DEB_ARCH) $(DEB_TARGET)

demo: build
	@scripts/demo

# Tables in Markdown; BENCH=dormant (or capture, study, codelets, accuracy, turnaround, blocking, clara, memory, aa, kept) for one of them.
bench: setup
	$(CARGO) build --release --workspace
	@$(BUILT)/cere-bench $(BENCH)

# Odd programs of many seeds, with a table of outcomes: FROM and TO are the seeds; it ends after SECONDS.
FROM ?= 1
TO ?= 1000000
SECONDS ?= 3600
fuzz: setup
	$(CARGO) build --release --workspace
	CERE_ODD=$(FROM)-$(TO) CERE_ODD_SECONDS=$(SECONDS) $(CARGO) test --release -p cere-tests --test odd

# The guide as HTML, in docs/guide/book.
book:
	@command -v mdbook >/dev/null || { echo "book: mdbook is not in PATH: cargo install mdbook --locked" >&2; exit 1; }
	mdbook build docs/guide
