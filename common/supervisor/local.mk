# The long-lived processes that own a container.
noinst_LIBRARIES += libsupervisor.a
libsupervisor_a_SOURCES = \
	common/supervisor/awaited_run.c common/supervisor/awaited_run.h \
	common/supervisor/channel.c common/supervisor/channel.h \
	common/supervisor/container.c common/supervisor/container.h \
	common/supervisor/disk_watch.c common/supervisor/disk_watch.h \
	common/supervisor/held.c common/supervisor/held.h \
	common/supervisor/psandbox_commands.c \
	common/supervisor/psandbox_container.c \
	common/supervisor/psandbox_life.c \
	common/supervisor/psandbox_listing.c \
	common/supervisor/psandbox_session.c \
	common/supervisor/request.c common/supervisor/request.h \
	common/supervisor/side_process.c common/supervisor/side_process.h \
	common/supervisor/supervisor.h \
	common/supervisor/supervisor_calls.c \
	common/supervisor/supervisor_container.c \
	common/supervisor/supervisor_index.c \
	common/supervisor/supervisor_main.c \
	common/supervisor/supervisor_run.c \
	common/supervisor/supervisor_self.h \
	common/supervisor/supervisor_take.c \
	common/supervisor/waiters.c common/supervisor/waiters.h

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/supervisor/unit
endif
FAKE_CONTAINER = tests/fakes/fake_container.c tests/fakes/fake_container.h tests/unit/supervisor/supervisor_world.h
tests_unit_supervisor_unit_SOURCES = \
	$(FAKE_CONTAINER) \
	tests/fakes/fake_psandbox.c \
	tests/fakes/fake_psandbox.h \
	tests/unit/supervisor/test_disk_watch.c \
	tests/unit/supervisor/test_held.c \
	tests/unit/supervisor/test_psandbox.c \
	tests/unit/supervisor/test_supervisor.c \
	tests/unit/supervisor/test_waiters.c
tests_unit_supervisor_unit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=snapshot_take
