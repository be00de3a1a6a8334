# Results, and the records below SANDBOX_ROOT that outlive a broker.
noinst_LIBRARIES += librecords.a
librecords_a_SOURCES = \
	common/records/run_result.c common/records/run_result.h \
	common/records/output.c common/records/output.h \
	common/records/kept_runs.c common/records/kept_runs.h \
	common/records/psandbox_record.c common/records/psandbox_record.h \
	common/records/run_lock.c common/records/run_lock.h \
	common/records/run_record.c common/records/run_record.h

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/records/unit
endif
tests_unit_records_unit_SOURCES = \
	tests/unit/records/test_capture.c \
	tests/unit/records/test_output.c \
	tests/unit/records/test_run_record.c

FUZZ_TARGETS += tests/fuzz/fuzz_output
tests_fuzz_fuzz_output_LDFLAGS = $(FUZZ_LINK)
