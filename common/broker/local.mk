# The main process of the broker and its helpers.
noinst_LIBRARIES += libbroker.a
libbroker_a_SOURCES = \
	common/broker/broker.h \
	common/broker/child_io.c common/broker/child_io.h \
	common/broker/dispatch.c \
	common/broker/host_watch.c common/broker/host_watch.h \
	common/broker/housekeeper.c common/broker/housekeeper.h \
	common/broker/housekeeper_link.c \
	common/broker/limits_probe.c common/broker/limits_probe.h \
	common/broker/network_probe.c common/broker/network_probe.h \
	common/broker/pending_conns.c common/broker/pending_conns.h \
	common/broker/probe.c common/broker/probe.h \
	common/broker/prune.c common/broker/prune.h \
	common/broker/psandboxes.c \
	common/broker/reattach.c common/broker/reattach.h \
	common/broker/readback.c common/broker/readback.h \
	common/broker/rooms.c common/broker/rooms.h \
	common/broker/saver.c common/broker/saver.h \
	common/broker/runs.c common/broker/supervisors.c \
	common/broker/server.c common/broker/server.h \
	common/broker/spawn.c common/broker/spawn.h \
	common/broker/tenant_limits.c \
	common/broker/warm_pool.c common/broker/warm_pool.h

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/broker/unit
endif
tests_unit_broker_unit_SOURCES = \
	$(FAKE_ENGINE) \
	tests/fakes/fake_supervisor.c \
	tests/unit/broker/broker_world.h \
	tests/unit/broker/test_child_io.c \
	tests/unit/broker/test_housekeeper.c \
	tests/unit/broker/test_limits.c \
	tests/unit/broker/test_network_probe.c \
	tests/unit/broker/test_readback.c \
	tests/unit/broker/test_rooms.c \
	tests/unit/broker/test_psandboxes.c \
	tests/unit/broker/test_server.c \
	tests/unit/broker/test_warm_pool.c
