noinst_LIBRARIES += libbroker.a
libbroker_a_SOURCES = \
	common/broker/admission.c common/broker/admission.h \
	common/broker/capture.c common/broker/capture.h \
	common/broker/children.c common/broker/children.h \
	common/broker/client.c common/broker/client.h \
	common/broker/client_call.c common/broker/client_call.h \
	common/broker/job.c common/broker/job.h \
	common/broker/job_list.c \
	common/broker/job_run.c \
	common/broker/keeper.c common/broker/keeper.h \
	common/broker/pool_settings.c common/broker/pool_settings.h \
	common/broker/run.c common/broker/run.h \
	common/broker/run_result.c common/broker/run_result.h \
	common/broker/runlock.c common/broker/runlock.h \
	common/broker/server.c common/broker/server.h \
	common/broker/slots.c common/broker/slots.h \
	common/broker/wire.c common/broker/wire.h

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/test_broker_admission \
	tests/unit/test_broker_capture \
	tests/unit/test_broker_children \
	tests/unit/test_broker_files \
	tests/unit/test_broker_pool_settings \
	tests/unit/test_broker_wire
endif

FUZZ_TARGETS += tests/fuzz/fuzz_broker_head
tests_fuzz_fuzz_broker_head_LDFLAGS = $(FUZZ_LINK)
