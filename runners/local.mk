# The entry program goes into the images, so it is static and knows nothing of sanitizers or of the rest of the tree.
nobase_pkglibexec_PROGRAMS += runners/common/entry
runners_common_entry_SOURCES = \
	runners/common/calls.c \
	runners/common/child.c \
	runners/common/code.c \
	runners/common/command.c \
	runners/common/command.h \
	runners/common/entry.h \
	runners/common/inbox.c \
	runners/common/index.c \
	runners/common/kill.c \
	runners/common/languages.c \
	runners/common/left.c \
	runners/common/main.c \
	runners/common/probe.c \
	runners/common/offer.c \
	runners/common/proof.c \
	runners/common/report.c \
	runners/common/script.c \
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

# What they were made of, for the stamp of the images (compile.sh).
nobase_parts_DATA += runners/sources
CLEANFILES += runners/sources
runners/sources: $(runners_common_entry_SOURCES) runners/warm/template.c runners/warm/bun.c runners/warm/warm.h runners/nss/nss.c
	$(AM_V_GEN)$(MKDIR_P) $(@D) && bash -c 'here=$(abs_srcdir)/runners && . "$$here/compile.sh" && sources_fingerprint' >$@

# Installed: the folders of the runners to share; the builder to libexec, beside what of the images needs a compiler.
nobase_dist_pkgdata_DATA += \
	runners/workbench/Dockerfile \
	runners/workbench/Dockerfile.extras \
	runners/workbench/bash/libraries \
	runners/workbench/extras/browser \
	runners/workbench/extras/documents \
	runners/workbench/extras/fortran \
	runners/workbench/extras/go \
	runners/workbench/extras/java \
	runners/workbench/extras/lua \
	runners/workbench/extras/media \
	runners/workbench/extras/ocr \
	runners/workbench/extras/octave \
	runners/workbench/extras/perl \
	runners/workbench/extras/php \
	runners/workbench/extras/r \
	runners/workbench/extras/ruby \
	runners/workbench/extras/rust \
	runners/workbench/extras/vision \
	runners/workbench/languages/bash \
	runners/workbench/languages/python \
	runners/workbench/languages/typescript \
	runners/workbench/layers/1-bash \
	runners/workbench/layers/2-python \
	runners/workbench/layers/3-rest \
	runners/workbench/python/figures.py \
	runners/workbench/python/fonts \
	runners/workbench/python/fonts.py \
	runners/workbench/python/ipython.py \
	runners/workbench/python/ipython_end.py \
	runners/workbench/python/ipython_lazy.py \
	runners/workbench/python/letters.py \
	runners/workbench/python/libraries \
	runners/workbench/python/magics.py \
	runners/workbench/python/names \
	runners/workbench/python/packages.py \
	runners/workbench/python/plotly_end.py \
	runners/workbench/python/preload.py \
	runners/workbench/python/program.py \
	runners/workbench/python/session.py \
	runners/workbench/python/show.py \
	runners/workbench/python/sitecustomize.py \
	runners/workbench/python/warm.py \
	runners/workbench/rest/package-lock.json.xz \
	runners/workbench/rest/package.json \
	runners/workbench/rest/wheels.txt \
	runners/workbench/typescript/choose.mjs \
	runners/workbench/typescript/decorators.json \
	runners/workbench/typescript/jsx.mjs \
	runners/workbench/typescript/last.mjs \
	runners/workbench/typescript/libraries \
	runners/workbench/typescript/session.mjs \
	runners/workbench/typescript/warm.mjs \
	runners/workbench/typescript/program.mjs
nobase_dist_pkgdata_SCRIPTS += \
	runners/workbench/add-extras \
	runners/workbench/bash/prove \
	runners/workbench/python/check.py \
	runners/workbench/prepare \
	runners/workbench/prove-extra \
	runners/workbench/python/install \
	runners/workbench/python/pip.py \
	runners/workbench/python/prepare \
	runners/workbench/python/prove \
	runners/workbench/typescript/choose \
	runners/workbench/typescript/install \
	runners/workbench/typescript/node \
	runners/workbench/typescript/npm \
	runners/workbench/typescript/npx \
	runners/workbench/typescript/prepare \
	runners/workbench/typescript/prove
nobase_dist_pkglibexec_SCRIPTS += runners/build.sh
nobase_dist_parts_DATA += runners/compile.sh runners/extras.sh
INSTALLED_PLACES += runners/build.sh:folders:$(pkgdatadir)/runners

EXTRA_DIST += runners/warm/bun.c runners/warm/template.c runners/warm/warm.h runners/nss/nss.c

dist_check_SCRIPTS += tests/runners/test_calls.py tests/runners/test_entry.py tests/runners/test_warm.py tests/runners/test_next.py tests/runners/test_languages.py tests/runners/test_script.py tests/runners/test_psandbox.py tests/runners/test_sessions.py
EXTRA_DIST += tests/runners/report.py tests/runners/sbx.py tests/runners/containers.py tests/runners/psandboxes.py tests/runners/hook.py tests/runners/test_images.py
