# The store behind the files: what is saved there, and read back.
noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = \
	common/store/folder.c \
	common/store/identity.c common/store/identity.h \
	common/store/kinds.c common/store/kinds.h \
	common/store/load.c common/store/load.h \
	common/store/manifest.c common/store/manifest.h \
	common/store/payload.c common/store/payload.h \
	common/store/record.c common/store/record.h \
	common/store/s3.c \
	common/store/save.c common/store/save.h \
	common/store/store.c common/store/store.h common/store/store_settings.h

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/store/unit
endif
tests_unit_store_unit_SOURCES = \
	tests/unit/store/test_manifest.c \
	tests/unit/store/test_store.c


FUZZ_TARGETS += tests/fuzz/fuzz_manifest
tests_fuzz_fuzz_manifest_LDFLAGS = $(FUZZ_LINK)
