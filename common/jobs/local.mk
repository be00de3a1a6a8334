# Short operations, each in a process of its own.
noinst_LIBRARIES += libjobs.a
libjobs_a_SOURCES = \
	common/jobs/job.c common/jobs/job.h \
	common/jobs/job_archive.c \
	common/jobs/job_files.c \
	common/jobs/job_import.c \
	common/jobs/job_links.c \
	common/jobs/job_list.c \
	common/jobs/job_psandbox.c \
	common/jobs/job_remove.c \
	common/jobs/job_status.c \
	common/jobs/run_lookup.c common/jobs/run_lookup.h

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/jobs/test_files \
	tests/unit/jobs/test_run_files \
	tests/unit/jobs/test_uploads
endif
