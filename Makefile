# Every target sets itself up. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup release demo run test test-rust test-python soak lint fix gen model bench load quality audit clean

UV_VERSION := 0.13.9
UV := $(CURDIR)/.tools/bin/uv
BIN := $(CURDIR)/.venv/bin
PROFILE := fast
export PATH := $(BIN):$(PATH)

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | column -t -s "$$(printf '\t')"

$(UV):
	@echo "setup: installing uv $(UV_VERSION) into .tools"
	@python3 -m venv .tools
	@.tools/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

setup: $(UV) ## Make .venv with the sidecar (its Rust core is built when it changed), the client and the tools
	@command -v cargo >/dev/null || { echo "setup: recalld's core needs Rust 1.90 or later (cargo): https://rustup.rs" >&2; exit 1; }
	@$(UV) sync --locked --compile-bytecode

demo: setup ## Run the main job on the bundled example: write a history, ask questions, show briefs and latencies
	@$(BIN)/recalld demo

run: setup ## Serve on the default Unix socket
	@$(BIN)/recalld serve

test: test-rust test-python ## Run all tests

test-rust: setup ## Run the Rust tests
	@cargo nextest run --cargo-profile $(PROFILE)

test-python: setup ## Run the Python tests, end-to-end ones included
	@$(BIN)/pytest -q

soak: setup ## Run only the tests that take a minute or more
	@$(BIN)/pytest -q -m soak

lint: setup ## Check formats, lints, types, the contract and the generated code
	@cargo fmt --all --check
	@cargo clippy --profile $(PROFILE) --all-targets -- -D warnings
	@cargo clippy --profile $(PROFILE) -p recalld-python -p recalld-gen -- -D warnings
	@ruff check
	@ruff format --check
	@mypy
	@$(BIN)/python -m mypy.stubtest recalld_sidecar._core --mypy-config-file pyproject.toml
	@lint-imports
	@buf lint
	@tools/breaking.sh
	@$(MAKE) --no-print-directory gen
	@git diff --exit-code --stat -- core_rs/proto clients/python/src/recalld/v1 || { echo "lint: generated code drifts from proto/: run 'make gen' and commit" >&2; exit 1; }

fix: setup ## Apply formatters and safe fixes
	@cargo fmt --all
	@ruff check --fix
	@ruff format
	@buf format -w

gen: setup ## Generate code from proto/
	@UV=$(UV) tools/gen.sh

model: setup ## Rebuild the embedding model from its corpora (CORPORA=folder) and compare with the shipped one
	@tools/model/rebuild.sh "$(CORPORA)"

# Results of a run of its own: what criterion keeps in target/criterion may be of other runs.
BENCHES := $(CURDIR)/target/benches

bench: setup ## Run the Rust micro-benchmarks and write docs/reports/bench.md
	@rm -rf $(BENCHES)
	@CRITERION_HOME=$(BENCHES) cargo bench --bench '*' -- --noplot --quiet \
		--warm-up-time 0.2 --measurement-time 0.4 --sample-size 10
	@$(BIN)/python -m tests.load.bench_report $(BENCHES) --report docs/reports/bench

# The core as it is released, in a copy of the package of its own: `fast` has the checks of a debug build.
RELEASE := $(CURDIR)/.cache/release

release: setup ## Build the core as it is released into .cache/release (slow: fat LTO)
	@cargo build --release -p recalld-python --features pyo3/extension-module
	@rm -rf $(RELEASE) && mkdir -p $(RELEASE) && cp -r sidecar/recalld_sidecar $(RELEASE)
	@cp target/release/lib_core.so $(RELEASE)/recalld_sidecar/_core.abi3.so
	@$(BIN)/python -m compileall -q $(RELEASE)

load: release ## Measure speed beside references and write docs/reports/load.md (LARGE=1: the largest stores too, hours)
	@PYTHONPATH=$(RELEASE) $(BIN)/python -m tests.load.figures --report docs/reports/load $(if $(LARGE),--large)

quality: setup ## Measure retrieval on question sets (DATA=folder) and write docs/reports/quality.md
	@$(BIN)/python -m tests.quality.evaluate --report docs/reports/quality $(if $(DATA),--data $(DATA))

audit: setup ## Check licences, bans and sources of the Rust dependencies
	@cargo deny --offline check bans licenses sources

clean: ## Remove what was built
	@rm -rf target .venv .tools
