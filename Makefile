# Short names for people. What each does is in cluster/ and in the workflow; nothing is decided here but the order.
#   make run NODES=4 ARGS='-n'
#   make run STUDY=config/studies/userlands-embedded.yaml
SHELL := /bin/bash
.DEFAULT_GOAL := help

cluster := cluster/tare-cluster
on_login := $(cluster) exec -- env CI=$(CI)

.NOTPARALLEL:
.PHONY: help up images down status shell run replay try try-here summary test test-login test-cluster test-lifecycle lint lint-here bench clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */  make \1\t/' | expand -t 22

up: ## start the embedded cluster, or repair it (NODES=4: with four compute nodes)
	@$(cluster) up --nodes "$(NODES)"

down: ## remove the cluster and whatever it needed, except the images
	@$(cluster) down

status: ## what is running: nodes, Slurm, swarm, networks
	@$(cluster) status

shell: ## a shell on the login node, as the job user, in the checkout
	@$(cluster) shell

images: up ## the images of further userlands (USERLANDS='debian11 debian12'); without them: what every cluster has
	@$(cluster) images $(USERLANDS)

run: up ## the study: build, measure, analyse, report (STUDY=config/studies/….yaml, ARGS='-n': more arguments for snakemake)
	@$(if $(STUDY),needed=$$($(on_login) python3 -m tare.cli userlands --config study=$(STUDY)) && $(cluster) images $$needed)
	$(on_login) python3 -m tare.cli run $(if $(STUDY),--config study=$(STUDY)) $(ARGS)
	@ls -1 results/*/report.html

replay: up ## the published data instead of measured ones: the same tables, figures and report, and an audit of every printed number
	$(on_login) python3 -m tare.replay config/studies/replay-*.yaml

try: up ## a rehearsal: the whole pipeline on made-up times, in less than a minute, with no job
	$(on_login) make try-here

# The same on a machine without a cluster, where the Python packages of pyproject.toml are installed.
try-here:
	snakemake --profile profiles/local --cores all --quiet all --config study=config/studies/try.yaml
	PYTHONPATH=src python3 -m tare.summary --results results/try

summary: up ## a study's answer in the terminal (STUDY=name; default: default)
	$(on_login) python3 -m tare.summary --results results/$(or $(STUDY),default)

test: up test-login test-cluster test-lifecycle ## everything: lint, unit, apps, workflow, cluster, the cluster's life on the host

test-login: lint
	$(on_login) python -m pytest tests/unit tests/apps tests/workflow

test-cluster: up
	@$(cluster) images debian11
	$(on_login) python -m pytest tests/cluster

test-lifecycle: up
	cluster/host-pytest tests/lifecycle

lint: up ## all linters, in the login node
	$(on_login) make lint-here

# The same where the tools of pyproject.toml's dev group are installed.
lint-here:
	ruff check .
	ruff format --check .
	mypy
	MYPYPATH=cluster mypy --strict --python-version 3.10 cluster/tare_cluster
	snakefmt --check Snakefile workflow
	shellcheck cluster/tare-cluster cluster/host-pytest cluster/node/rootfs/usr/local/sbin/tare-node .ci/run
	clang-format --dry-run -Werror $(wildcard src/*/*.[ch] src/*/*/*.[ch])
# DL3008, DL3018: versions are the suite's; the tests compare what matters (MPI, libc) between node and image. SC2016: apt's own $(…).
	hadolint --ignore DL3008 --ignore DL3018 --ignore SC2016 cluster/node/Dockerfile containers/*/Dockerfile

bench: up ## how long the workflow itself takes: reading, planning, nothing measured
	$(on_login) bash -c 'time snakemake --profile slurm -n -q'

clean: ## down, and the images and build folders too
	@$(cluster) clean
	rm -rf build .snakemake
