# The long-lived processes that own a container.
noinst_LIBRARIES += libsupervisor.a
libsupervisor_a_SOURCES = \
	common/supervisor/broker_address.c common/supervisor/broker_address.h \
	common/supervisor/output_stream.c common/supervisor/output_stream.h \
	common/supervisor/psandbox.c common/supervisor/psandbox.h \
	common/supervisor/psandbox_calls.c \
	common/supervisor/psandbox_channel.c \
	common/supervisor/psandbox_container.c \
	common/supervisor/psandbox_exec.c \
	common/supervisor/psandbox_self.h \
	common/supervisor/psandbox_session.c \
	common/supervisor/run_limits.c common/supervisor/run_limits.h \
	common/supervisor/supervisor.c common/supervisor/supervisor.h \
	common/supervisor/supervisor_channel.c \
	common/supervisor/supervisor_claim.c \
	common/supervisor/supervisor_container.c \
	common/supervisor/supervisor_files.c \
	common/supervisor/supervisor_install.c \
	common/supervisor/supervisor_loop.c \
	common/supervisor/supervisor_reply.c \
	common/supervisor/supervisor_self.h \
	common/supervisor/waiters.c common/supervisor/waiters.h

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/supervisor/test_psandbox \
	tests/unit/supervisor/test_supervisor \
	tests/unit/supervisor/test_waiters
FAKE_CONTAINER = tests/fakes/fake_container.c tests/fakes/fake_container.h tests/unit/supervisor/supervisor_world.h
tests_unit_supervisor_test_waiters_SOURCES = tests/unit/supervisor/test_waiters.c $(FAKE_CONTAINER)
tests_unit_supervisor_test_psandbox_SOURCES = tests/unit/supervisor/test_psandbox.c \
	tests/fakes/fake_psandbox.c tests/fakes/fake_psandbox.h
tests_unit_supervisor_test_supervisor_SOURCES = tests/unit/supervisor/test_supervisor.c $(FAKE_CONTAINER)
endif
