# Short operations, each in a process of its own.
noinst_LIBRARIES += libjobs.a
libjobs_a_SOURCES = \
	common/jobs/job.c common/jobs/job.h \
	common/jobs/job_archive.c \
	common/jobs/job_room.c \
	common/jobs/job_files.c \
	common/jobs/job_links.c \
	common/jobs/job_list.c \
	common/jobs/job_main.c \
	common/jobs/job_memory.c \
	common/jobs/job_runs.c

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/jobs/unit
endif
tests_unit_jobs_unit_SOURCES = \
	tests/unit/jobs/job_rooms.h \
	tests/unit/jobs/test_files.c \
	tests/unit/jobs/test_run_files.c \
	tests/unit/jobs/test_uploads.c
tests_unit_jobs_unit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fstatvfs
