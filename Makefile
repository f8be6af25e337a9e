# make test         set up what is missing and run the tests (the README's test command)
# make test-slow    what takes long: many seeds, soak, kills by the dozen, the embedded model at length
# make pythons      install and ask with each other Python from 3.11 to 3.13 that is on this machine
# make check        linters, types, import contracts, then both kinds of tests and `pythons` (what CI runs)
# make lint         linters, types and import contracts alone
# make format       let ruff repair and format what it can
# make browser-use  the browser's contract on browser-use, in an environment of its own
# make page         build the page, if its sources changed
# make docs         build the manual's site into site/, with all its links checked (SITE_URL=… is where it is published)
# make types        generate the page's types of events
# make lock         write the locked versions of lock/ again (UPGRADE=--upgrade takes newer ones)
# make run          set up and talk to the team
# make serve        set up and serve the HTTP API
# make bench        the figures of docs/figures.md, measured here
BIN := .venv/bin

# Many containers set it; each worker of the tests would then compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup page docs types test test-slow pythons check browser-use browser-use-begun compiled lint format lock run serve bench

setup:
	@bash setup.sh dev

# The tests wait for much of their time: with four more workers than cores the cores are busy.
WORKERS ?= $(shell cores=$$(nproc); echo $$((cores < 6 ? cores + 4 : 8)))
# CI tries a test that failed once more and lists it ("rerun"): such a test is a defect, but no reason to lose a change.
RERUNS = $(if $(CI),--reruns 1 -r R)
PYTEST = $(BIN)/pytest $(RERUNS) -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: setup
	$(PYTEST)

test-slow: setup
	$(PYTEST) -m slow

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

# browser-use pins shared packages, so it has an environment of its own, here as at run time.
# They run with a low priority, because tests that run at the same time measure.
browser-use: setup
	@nice bash tests/browser/contract/apart.sh

# Downloads dominate the time of making that environment, so it is made in the background of the other checks.
browser-use-begun: setup
	@bash tests/browser/contract/apart.sh prepare >/dev/null 2>&1 </dev/null &

# The workers would compile the tests all at the same time: it is done once, on the CPU that pyright leaves idle.
compiled: setup
	@$(BIN)/pytest --collect-only -qq >/dev/null 2>&1 </dev/null &

check: browser-use-begun compiled lint
	@$(MAKE) --jobs 2 --no-print-directory test browser-use
	@$(MAKE) --jobs 2 --no-print-directory test-slow pythons

# The other Pythons that pyproject.toml allows, as far as this machine has them: installed from the lock, and asked.
pythons: setup
	@nice bash .ci/try . --others

# A Python with pip is enough: without an environment Node.js is installed for the build alone.
page:
	@if [ -x $(BIN)/python ]; then $(BIN)/python web/page_build.py; \
	elif python3 -m pip --version >/dev/null 2>&1; then python3 web/page_build.py; \
	else bash setup.sh && $(BIN)/python web/page_build.py; fi

docs: setup
	$(BIN)/python -m manual $(if $(SITE_URL),--site-url '$(SITE_URL)')

# The page's TypeScript types of events; a test compares them with the Python classes.
types: setup
	$(BIN)/python -m maniple.events.typescript web/src/events.generated.ts

lock: setup
	$(BIN)/python -m pip install --quiet uv
	PATH="$(CURDIR)/$(BIN):$$PATH" bash lock/make.sh $(UPGRADE)

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

run:
	@bash run.sh

serve:
	@bash setup.sh
	$(BIN)/maniple serve

bench: setup
	$(BIN)/python -m bench
