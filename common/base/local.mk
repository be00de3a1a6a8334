noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	common/base/acceptor.c common/base/acceptor.h \
	common/base/address.c common/base/address.h \
	common/base/auto.c common/base/auto.h \
	common/base/b64.c common/base/b64.h \
	common/base/buf.c common/base/buf.h \
	common/base/privsep.c common/base/privsep.h \
	common/base/privsep_confine.c \
	common/base/charset.c common/base/charset.h \
	common/base/clock.c common/base/clock.h \
	common/base/conf.c common/base/conf_load.c common/base/conf.h \
	common/base/conf_line.c common/base/conf_line.h \
	common/base/conf_names.c common/base/conf_names.h \
	common/base/crypto.c common/base/crypto.h \
	common/base/embed.h \
	common/base/err.c common/base/err.h \
	common/base/fdio.c common/base/fdio.h \
	common/base/glob.c common/base/glob.h \
	common/base/log.c common/base/log.h \
	common/base/loop.c common/base/loop.h \
	common/base/machine.c common/base/machine.h \
	common/base/mem.c common/base/mem.h \
	common/base/metrics.c common/base/metrics.h \
	common/base/network.c common/base/network.h \
	common/base/node.c common/base/node.h \
	common/base/parse.c common/base/parse.h \
	common/base/purpose.c common/base/purpose.h \
	common/base/remedy.c common/base/remedy.h \
	common/base/share.h \
	common/base/sock.c common/base/sock.h \
	common/base/sock_message.c \
	common/base/tenants.c common/base/tenants.h \
	common/base/trace.c common/base/trace.h \
	common/base/utf8.c common/base/utf8.h \
	common/base/version.c common/base/version.h
# PKGLIBEXECDIR: as in fcgi/local.mk.
libbase_a_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBEXECDIR='"$(pkglibexecdir)"'

# Written anew only when the commit is another one: an unchanged one compiles nothing.
common/base/libbase_a-version.$(OBJEXT): common/base/built_version.h
common/base/built_version.h: always
	@$(MKDIR_P) $(@D) && $(srcdir)/service/release/version.sh --header $@
always:
.PHONY: always
CLEANFILES += common/base/built_version.h

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/base/unit
endif
tests_unit_base_unit_SOURCES = \
	tests/unit/base/test_acceptor.c \
	tests/unit/base/test_address.c \
	tests/unit/base/test_auto.c \
	tests/unit/base/test_b64.c \
	tests/unit/base/test_buf.c \
	tests/unit/base/test_charset.c \
	tests/unit/base/test_clock.c \
	tests/unit/base/test_conf.c \
	tests/unit/base/test_crypto.c \
	tests/unit/base/test_err.c \
	tests/unit/base/test_fdio.c \
	tests/unit/base/test_fds.c \
	tests/unit/base/test_glob.c \
	tests/unit/base/test_log.c \
	tests/unit/base/test_loop.c \
	tests/unit/base/test_machine.c \
	tests/unit/base/test_mem.c \
	tests/unit/base/test_metrics.c \
	tests/unit/base/test_node.c \
	tests/unit/base/test_parse.c \
	tests/unit/base/test_privsep.c \
	tests/unit/base/test_purpose.c \
	tests/unit/base/test_remedy.c \
	tests/unit/base/test_share.c \
	tests/unit/base/test_sock.c \
	tests/unit/base/test_sock_message.c \
	tests/unit/base/test_tenants.c \
	tests/unit/base/test_utf8.c

FUZZ_TARGETS += tests/fuzz/fuzz_b64 tests/fuzz/fuzz_conf tests/fuzz/fuzz_glob tests/fuzz/fuzz_sock
FUZZ_TARGETS += tests/fuzz/fuzz_charset tests/fuzz/fuzz_tenants tests/fuzz/fuzz_utf8
tests_fuzz_fuzz_b64_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_charset_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_conf_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_glob_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_sock_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_tenants_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_utf8_LDFLAGS = $(FUZZ_LINK)
