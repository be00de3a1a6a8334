# Measuring, against a server that start.sh has started: tests/bench/run.sh builds and uses it.
EXTRA_PROGRAMS += tests/bench/bench
tests_bench_bench_SOURCES = \
	tests/bench/bench.c \
	tests/bench/load.c tests/bench/load.h \
	tests/bench/stack.c tests/bench/stack.h \
	tests/bench/stats.c tests/bench/stats.h \
	tests/bench/streams.c tests/bench/streams.h \
	tests/bench/wire.c tests/bench/wire.h
tests_bench_bench_LDADD = $(LAYERS) $(OUTSIDE_LIBS)
EXTRA_PROGRAMS += tests/bench/growth
tests_bench_growth_SOURCES = tests/bench/growth.c fcgi/hub/fcgi_record.c
tests_bench_growth_LDADD = $(LAYERS) $(OUTSIDE_LIBS)
EXTRA_DIST += tests/bench/run.sh tests/bench/run_code.sh tests/bench/run_code tests/bench/psandbox_exec.py tests/bench/README.md
EXTRA_DIST += tests/bench/cluster_model.py tests/bench/disk.py tests/bench/edge.py tests/bench/list_files.py tests/bench/oauth.py tests/bench/rhythm.py tests/bench/sessions.py tests/bench/waiting.py tests/bench/walls.py tests/bench/ways.py
EXTRA_DIST += tests/bench/run.sh tests/bench/run_code.sh tests/bench/run_code tests/bench/links.py tests/bench/README.md

growth: tests/bench/growth
	tests/bench/growth $(ARCHIVES)
.PHONY: growth
