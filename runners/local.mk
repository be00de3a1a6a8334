# The entry program goes into the images, so it is static and knows nothing of sanitizers or of the rest of the tree.
nobase_pkglibexec_PROGRAMS += runners/common/entry
runners_common_entry_SOURCES = \
	runners/common/child.c \
	runners/common/code.c \
	runners/common/command.c \
	runners/common/command.h \
	runners/common/entry.h \
	runners/common/inbox.c \
	runners/common/index.c \
	runners/common/kill.c \
	runners/common/languages.c \
	runners/common/main.c \
	runners/common/probe.c \
	runners/common/offer.c \
	runners/common/proof.c \
	runners/common/report.c \
	runners/common/serve.c \
	runners/common/util.c \
	runners/common/warm.c \
	runners/common/wipe.c
runners_common_entry_CPPFLAGS = -I$(top_srcdir)
runners_common_entry_CFLAGS = -std=gnu17 $(WARN_CFLAGS) -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong
runners_common_entry_LDFLAGS = -static -s
runners_common_entry_LDADD =

# A shared object goes into foreign processes, so it has nothing of the configured flags either.
shared_objects = runners/warm/warm.so runners/nss/libnss_sandbox.so.2
nobase_parts_DATA += $(shared_objects)
CLEANFILES += $(shared_objects)
runners/warm/warm.so: runners/warm/template.c runners/warm/bun.c runners/warm/warm.h
runners/nss/libnss_sandbox.so.2: runners/nss/nss.c
$(shared_objects):
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && \
	$(CC) -std=gnu17 -O2 $(WARN_CFLAGS) -fPIC -shared -s -o $@ $(srcdir)/$(@D)/*.c

# Installed: the folders of the languages to share; the builder to libexec, beside what of the images needs a compiler.
nobase_dist_pkgdata_DATA += \
	runners/bash/Dockerfile \
	runners/bash/libraries \
	runners/python/Dockerfile \
	runners/python/figures.py \
	runners/python/libraries \
	runners/python/preload.py \
	runners/python/session.py \
	runners/python/sitecustomize.py \
	runners/python/warm.py \
	runners/typescript/Dockerfile \
	runners/typescript/libraries \
	runners/typescript/package-lock.json \
	runners/typescript/package.json \
	runners/typescript/session.mjs \
	runners/typescript/warm.mjs
nobase_dist_pkgdata_SCRIPTS += \
	runners/bash/prove \
	runners/python/install \
	runners/python/pip.py \
	runners/python/prepare \
	runners/python/prove \
	runners/typescript/install \
	runners/typescript/node \
	runners/typescript/npm \
	runners/typescript/npx \
	runners/typescript/prove
nobase_dist_pkglibexec_SCRIPTS += runners/build.sh
INSTALLED_PLACES += runners/build.sh:folders:$(pkgdatadir)/runners

EXTRA_DIST += runners/README.md runners/warm/bun.c runners/warm/template.c runners/warm/warm.h runners/nss/nss.c

dist_check_SCRIPTS += tests/runners/test_entry.py tests/runners/test_warm.py tests/runners/test_next.py tests/runners/test_languages.py tests/runners/test_psandbox.py tests/runners/test_sessions.py
EXTRA_DIST += tests/runners/report.py tests/runners/sbx.py tests/runners/containers.py tests/runners/psandboxes.py tests/runners/hook.py tests/runners/test_images.py
