# Everything a fresh machine needs is set up by the first target that asks for it.
PYTHON ?= python3
BIN := .venv/bin
RUST := $(shell find src macros python/src -name '*.rs') Cargo.toml Cargo.lock python/Cargo.toml macros/Cargo.toml

# Compiled modules are kept: tests start many processes.
unexport PYTHONDONTWRITEBYTECODE

SECONDS ?= 60
RECORD ?= target/record.json
BASE ?= target/base.json

.PHONY: bench-choice bench-compare bench-record bench-fill bench-training demo dist licences semver test test-rust test-python check check-rust check-python test-slow fuzz audit bench bench-estimators truth papers docs clean
.DELETE_ON_ERROR:

demo: .venv/built
	$(BIN)/polyabayes demo

# Both at once: on two processors either leaves one idle at times.
test:
	$(MAKE) --jobs=2 test-rust test-python

# Tests of the core's public face share the build that Python has; cargo is to start its own jobs.
SHARED := --quiet --profile quick --package polyabayes --package polyabayes-python
test-rust: export MAKEFLAGS :=
test-rust: .venv/built
	cargo test --quiet --lib
	cargo test $(SHARED) --test core --examples
	cargo test $(SHARED) --doc

# One thread for linear algebra: the processes of the tests share the processors.
test-python: export OPENBLAS_NUM_THREADS := 1
test-python: .venv/built .venv/tested
	$(BIN)/python -m pytest --quiet -n auto --dist worksteal --durations=10

check: .venv/built .venv/tested
	$(MAKE) --jobs=2 check-rust check-python

check-rust:
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" cargo doc --quiet --no-deps --package polyabayes

check-python:
	$(BIN)/python .ci/budget.py
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest polyabayes._core --allowlist .ci/stubtest.txt

# Laws of large samples, those of the core as in a release, and the core with checked arithmetic: minutes.
test-slow: .venv/built .venv/tested
	cargo test --quiet
	cargo test --quiet --release -- --include-ignored
	$(BIN)/python -m pytest --quiet -m slow

# Hostile arrays, files and faults of the machine: make fuzz SECONDS=600
fuzz: .venv/built .venv/tested
	PROPTEST_CASES=20000 cargo test --quiet --release --test core hostile::
	$(BIN)/python fuzz/fuzz.py --seconds $(SECONDS) --seed $$(date +%s)
	$(BIN)/python fuzz/faults.py --rounds $$(( $(SECONDS) / 10 )) --seed $$(date +%s)

# Advisories, licences and sources of dependencies, and memory under hostile input, by the tools that
# are installed. Miri wants a nightly: rustup toolchain install nightly --component miri,rust-src; it
# runs the tests that index most and end within minutes under an interpreter.
if_answers = @if $(1) > /dev/null 2>&1; then echo "$(2)"; $(2); else echo "not run: $(1) fails"; fi
AUDITED := ^(numpy|scipy|scikit-learn|safetensors)==
VALGRIND := CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='valgrind --quiet --error-exitcode=9'
audit: .venv/built .venv/tested
	@$(BIN)/pip freeze | grep -E "$(AUDITED)" > target/audited.txt
	$(call if_answers,cargo deny --version,cargo deny check licenses bans sources)
	$(call if_answers,cargo audit --version,cargo audit)
	$(call if_answers,$(BIN)/pip-audit --version,$(BIN)/pip-audit --strict --no-deps --disable-pip -r target/audited.txt)
	$(call if_answers,cargo +nightly miri --version,cargo +nightly miri test --lib -- counts:: math::categorical)
	$(call if_answers,valgrind --version,$(VALGRIND) cargo test --release --test core -- hostile:: exact::)

# Kernels by instructions, times of one thread, Ctrl-C, and the tables beside other packages.
bench: .venv/released .venv/tested
	$(BIN)/python benches/record.py kernels
	$(BIN)/python benches/record.py run --output $(RECORD)
	$(BIN)/python benches/peers.py

# Times of one thread in RECORD: a base for the comparison below.
bench-record: .venv/released .venv/tested
	$(BIN)/python benches/record.py run --output $(RECORD)

# Times of one thread against an earlier record: make bench-compare BASE=target/base.json
bench-compare: bench-record
	$(BIN)/python benches/record.py compare $(BASE) $(RECORD)

# The tables of the pages from the records in benches/records.
bench-fill:
	$(BIN)/python benches/record.py fill

# Every table and figure of the papers, in a small form; SIZE=middle makes those of the pages anew.
papers: .venv/released .venv/tested
ifeq ($(SIZE),)
	$(BIN)/python -m benches.papers --no-pictures
else
	$(BIN)/python -m benches.papers --size $(SIZE) -o docs/papers
	$(BIN)/python -m benches.papers.pages
endif

# Every estimator against the truth; ten minutes on one thread.
bench-estimators: .venv/released .venv/tested
	$(BIN)/python benches/estimators.py

# Simulators of every kind of claim against the truth, of the day's seed: make truth SIZE=10
truth: .venv/released .venv/tested
	$(BIN)/python -m benches.truth --size $(or $(SIZE),1)

# Training over seeds, on simulated documents; some minutes on one thread.
bench-training: .venv/released .venv/tested
	$(BIN)/python benches/starts.py

# Who finds the number of topics; some hours on one thread, which go on where they were broken off.
bench-choice: .venv/released .venv/tested
	$(BIN)/python -m benches.choice

# The site in target/docs: programs of the gallery and notebooks run, warnings are errors.
docs: .venv/built .venv/docs
	cargo doc --quiet --no-deps --package polyabayes
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -d target/docs-trees docs target/docs

.venv/docs: .venv/tested pyproject.toml
	$(BIN)/pip install --quiet --group docs
	touch $@

# What tests and checks need beside the package.
.venv/tested: .venv/made pyproject.toml
	@echo "polyabayes: installing what tests and checks need"
	$(BIN)/pip install --quiet --no-compile --group dev
	touch $@

# Without a group, maturin installs that of the developers.
.venv/built: .venv/made $(RUST)
	@echo "polyabayes: compiling the core as far as it has changed"
	. $(BIN)/activate && maturin develop --profile quick --quiet --group run
	touch $@

# Kernels as in a release, for benches.
.venv/released: .venv/built
	. $(BIN)/activate && maturin develop --release --quiet --group run
	touch $@

# The core is compiled while packages are downloaded.
.venv/made: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile --upgrade pip 'maturin>=1.8,<2'
	@echo "polyabayes: compiling the core while packages are installed, one to three minutes"
	. $(BIN)/activate; maturin build --profile quick --out target/wheels & \
		pip install --quiet --no-compile --group run && wait $$!
	touch $@

# What a release uploads, checked and tried: source distribution, manylinux wheel, crate, licences.
dist: .venv/made
	$(BIN)/pip install --quiet ziglang twine abi3audit
	rm -rf target/dist
	. $(BIN)/activate && maturin sdist --out target/dist
	. $(BIN)/activate && maturin build --release --quiet --zig --compatibility manylinux2014 \
		--out target/dist
	. $(BIN)/activate && PYO3_CONFIG_FILE=$(CURDIR)/packaging/cp314t.cfg maturin build --release --quiet --zig \
		--compatibility manylinux2014 --interpreter python3.14t --out target/dist
	$(BIN)/twine check --strict target/dist/*
	$(BIN)/abi3audit --strict target/dist/*-abi3-*.whl
	$(BIN)/python packaging/try_wheel.py target/dist/*.whl
	cargo package --quiet --package polyabayes-macros --package polyabayes

# What the crate's interface changed since a tag: cargo install cargo-semver-checks.
semver:
	cargo semver-checks --package polyabayes --baseline-rev $(BASE_TAG)

# Licences of the crates in the wheel: cargo install cargo-bundle-licenses. What a crate does not ship
# is kept from before.
licences:
	cd python && cargo bundle-licenses --format yaml --prefer MIT --previous ../THIRDPARTY.yml \
		--output ../THIRDPARTY.yml

clean:
	rm -rf .venv target demo-output
