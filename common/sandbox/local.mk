# Sandbox directories, files in them, and what a run changed.
noinst_LIBRARIES += libsandbox.a
libsandbox_a_SOURCES = \
	common/sandbox/archive.h \
	common/sandbox/archive_cage.c common/sandbox/archive_cage.h \
	common/sandbox/archive_read.c \
	common/sandbox/archive_record.c common/sandbox/archive_record.h \
	common/sandbox/archive_write.c \
	common/sandbox/beneath.c common/sandbox/beneath.h \
	common/sandbox/files.c common/sandbox/files.h \
	common/sandbox/files_delete.c \
	common/sandbox/files_list.c common/sandbox/files_list.h \
	common/sandbox/files_move.c \
	common/sandbox/files_way.c common/sandbox/files_way.h \
	common/sandbox/link.c common/sandbox/link.h \
	common/sandbox/local.c common/sandbox/local.h \
	common/sandbox/kit.c common/sandbox/kit.h \
	common/sandbox/media.c common/sandbox/media.h \
	common/sandbox/quota.c common/sandbox/quota.h \
	common/sandbox/retention.c common/sandbox/retention.h \
	common/sandbox/sandbox.c common/sandbox/sandbox.h \
	common/sandbox/snapshot.c common/sandbox/snapshot.h \
	common/sandbox/spare.c common/sandbox/spare.h \
	common/sandbox/staging.c common/sandbox/staging.h \
	common/sandbox/state.c common/sandbox/state.h \
	common/sandbox/state_size.c \
	common/sandbox/ticket.c common/sandbox/ticket.h \
	common/sandbox/trash.c common/sandbox/trash.h \
	common/sandbox/tree.c common/sandbox/tree.h \
	common/sandbox/unpack.c common/sandbox/unpack.h \
	common/sandbox/upload.c common/sandbox/upload.h \
	common/sandbox/usage.c common/sandbox/usage.h

# Programs for containers that stay, inside our own: assembled into an archive of their own, with paths of the build.
noinst_LIBRARIES += libkit.a
libkit_a_SOURCES = common/sandbox/kit_files.c common/sandbox/kit_files.h
libkit_a_CPPFLAGS = $(AM_CPPFLAGS) -DKIT_SOURCES='"$(srcdir)"'
common/sandbox/libkit_a-kit_files.$(OBJEXT): runners/common/entry$(EXEEXT) \
	$(srcdir)/runners/python/session.py $(srcdir)/runners/typescript/session.mjs

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/test_archive \
	tests/unit/test_files \
	tests/unit/test_files_list \
	tests/unit/test_files_move \
	tests/unit/test_files_race \
	tests/unit/test_files_race_walk \
	tests/unit/test_files_walk \
	tests/unit/test_link \
	tests/unit/test_local \
	tests/unit/test_kit \
	tests/unit/test_media \
	tests/unit/test_quota \
	tests/unit/test_retention \
	tests/unit/test_sandbox \
	tests/unit/test_snapshot \
	tests/unit/test_spare \
	tests/unit/test_state \
	tests/unit/test_ticket \
	tests/unit/test_trash \
	tests/unit/test_upload
# The same once more, on a kernel that seems to lack openat2.
tests_unit_test_files_race_walk_SOURCES = tests/unit/test_files_race.c
tests_unit_test_files_race_walk_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_NO_OPENAT2
tests_unit_test_files_walk_SOURCES = tests/unit/test_files.c
tests_unit_test_files_walk_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_NO_OPENAT2
endif

EXTRA_DIST += tests/unit/sandbox_fixture.h

FUZZ_TARGETS += tests/fuzz/fuzz_archive
tests_fuzz_fuzz_archive_LDFLAGS = $(FUZZ_LINK)

FUZZ_TARGETS += tests/fuzz/fuzz_link
tests_fuzz_fuzz_link_LDFLAGS = $(FUZZ_LINK)
