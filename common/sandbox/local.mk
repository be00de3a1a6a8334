# Sandbox directories, files in them, and what a run changed.
noinst_LIBRARIES += libsandbox.a
libsandbox_a_SOURCES = \
	common/sandbox/beneath.c common/sandbox/beneath.h \
	common/sandbox/files.c common/sandbox/files.h \
	common/sandbox/media.c common/sandbox/media.h \
	common/sandbox/sandbox.c common/sandbox/sandbox.h \
	common/sandbox/snapshot.c common/sandbox/snapshot.h \
	common/sandbox/staging.c common/sandbox/staging.h
