CARGO ?= cargo

.PHONY: all setup build check test

all: build

setup:
	@scripts/setup

build: setup
	$(CARGO) build --release --workspace

check: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

test: check build
	$(CARGO) test --workspace --release
