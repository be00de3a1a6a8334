# Sandbox directories, files in them, and what a run changed.
noinst_LIBRARIES += libsandbox.a
libsandbox_a_SOURCES = \
	common/sandbox/archive/archive.h \
	common/sandbox/archive/archive_privsep.c common/sandbox/archive/archive_privsep.h \
	common/sandbox/archive/archive_read.c \
	common/sandbox/archive/archive_write.c \
	common/sandbox/archive/backup.c common/sandbox/archive/backup.h \
	common/sandbox/archive/restore.c \
	common/sandbox/archive/restore_move.c common/sandbox/archive/restore_move.h \
	common/sandbox/files/beneath.c common/sandbox/files/beneath.h \
	common/sandbox/files/files.c common/sandbox/files/files.h \
	common/sandbox/files/files_list.c \
	common/sandbox/links/file_link.c common/sandbox/links/file_link.h \
	common/sandbox/links/link.c common/sandbox/links/link.h \
	common/sandbox/files/media.c common/sandbox/files/media.h \
	common/sandbox/files/owner.c common/sandbox/files/owner.h \
	common/sandbox/files/plant.c common/sandbox/files/plant.h \
	common/sandbox/state/quota.c common/sandbox/state/quota.h \
	common/sandbox/state/expiry_clock.c common/sandbox/state/expiry_clock.h \
	common/sandbox/state/sizes.c common/sandbox/state/sizes.h \
	common/sandbox/state/retention.c common/sandbox/state/retention.h \
	common/sandbox/state/trim.c common/sandbox/state/trim.h \
	common/sandbox/state/unsaved.c common/sandbox/state/unsaved.h \
	common/sandbox/state/user_quota.c common/sandbox/state/user_quota.h \
	common/sandbox/sandbox.c common/sandbox/sandbox.h common/sandbox/sandbox_root.h common/sandbox/root.c \
	common/sandbox/snapshot.c common/sandbox/snapshot.h \
	common/sandbox/files/staging.c common/sandbox/files/staging.h \
	common/sandbox/state/state.c common/sandbox/state/state.h \
	common/sandbox/files/tree.c common/sandbox/files/tree.h \
	common/sandbox/archive/unpack.c \
	common/sandbox/stand_in.c common/sandbox/stand_in.h \
	common/sandbox/warm_dir.c common/sandbox/warm_dir.h \
	common/sandbox/links/upload.c common/sandbox/links/upload.h

# Programs for persistent sandboxes, inside the program: assembled into an archive of their own, with paths of the build.
noinst_LIBRARIES += libhelpers.a
libhelpers_a_SOURCES = common/sandbox/helpers.c common/sandbox/helpers.h
libhelpers_a_CPPFLAGS = $(AM_CPPFLAGS) -DHELPERS_SOURCES='"$(srcdir)"'
common/sandbox/libhelpers_a-helpers.$(OBJEXT): runners/common/entry$(EXEEXT) \
	$(srcdir)/runners/workbench/python/session.py $(srcdir)/runners/workbench/typescript/session.mjs

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/sandbox/unit
endif
tests_unit_sandbox_unit_SOURCES = \
	tests/unit/sandbox/kernel.c \
	tests/unit/sandbox/kernel.h \
	tests/unit/sandbox/sandbox_fixture.h \
	tests/unit/sandbox/test_archive.c \
	tests/unit/sandbox/test_backup.c \
	tests/unit/sandbox/test_file_link.c \
	tests/unit/sandbox/test_files.c \
	tests/unit/sandbox/test_files_list.c \
	tests/unit/sandbox/test_files_move.c \
	tests/unit/sandbox/test_files_race.c \
	tests/unit/sandbox/test_helpers.c \
	tests/unit/sandbox/test_link.c \
	tests/unit/sandbox/test_media.c \
	tests/unit/sandbox/test_owner.c \
	tests/unit/sandbox/test_quota.c \
	tests/unit/sandbox/test_retention.c \
	tests/unit/sandbox/test_sandbox.c \
	tests/unit/sandbox/test_snapshot.c \
	tests/unit/sandbox/test_stand_in.c \
	tests/unit/sandbox/test_state.c \
	tests/unit/sandbox/test_ticket.c \
	tests/unit/sandbox/test_trash.c \
	tests/unit/sandbox/test_trim.c \
	tests/unit/sandbox/test_upload.c \
	tests/unit/sandbox/test_user_quota.c \
	tests/unit/sandbox/test_warm_dir.c
tests_unit_sandbox_unit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fstatvfs

FUZZ_TARGETS += tests/fuzz/fuzz_archive
tests_fuzz_fuzz_archive_LDFLAGS = $(FUZZ_LINK)

FUZZ_TARGETS += tests/fuzz/fuzz_backup
tests_fuzz_fuzz_backup_LDFLAGS = $(FUZZ_LINK)

FUZZ_TARGETS += tests/fuzz/fuzz_link
tests_fuzz_fuzz_link_LDFLAGS = $(FUZZ_LINK)
