# The main process of the broker and its helpers.
noinst_LIBRARIES += libbroker.a
libbroker_a_SOURCES = \
	common/broker/broker.h \
	common/broker/child_io.c \
	common/broker/cpu_pressure.c common/broker/cpu_pressure.h \
	common/broker/dispatch.c \
	common/broker/housekeeper.c common/broker/housekeeper.h \
	common/broker/housekeeper_link.c common/broker/housekeeper_link.h \
	common/broker/job_limits.c \
	common/broker/pending_conns.c common/broker/pending_conns.h \
	common/broker/prune.c common/broker/prune.h \
	common/broker/prune_pass.c common/broker/prune_pass.h \
	common/broker/psandboxes.c \
	common/broker/reattach.c common/broker/reattach.h \
	common/broker/run_queue.c common/broker/run_queue.h \
	common/broker/server.c common/broker/server.h \
	common/broker/spawn.c \
	common/broker/warm_pool.c

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/broker/test_cpu_pressure \
	tests/unit/broker/test_housekeeper \
	tests/unit/broker/test_psandboxes \
	tests/unit/broker/test_server
tests_unit_broker_test_server_SOURCES = tests/unit/broker/test_server.c \
	tests/unit/broker/broker_world.h tests/fakes/fake_supervisor.c $(FAKE_ENGINE)
tests_unit_broker_test_psandboxes_SOURCES = tests/unit/broker/test_psandboxes.c \
	tests/unit/broker/broker_world.h tests/fakes/fake_psandboxes.c tests/fakes/fake_supervisor.c $(FAKE_ENGINE)
endif
