noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	common/base/auto.c common/base/auto.h \
	common/base/b64.c common/base/b64.h \
	common/base/buf.c common/base/buf.h \
	common/base/clock.c common/base/clock.h \
	common/base/conf.c common/base/conf.h \
	common/base/conf_print.c \
	common/base/crypto.c common/base/crypto.h \
	common/base/err.c common/base/err.h \
	common/base/fdio.c common/base/fdio.h \
	common/base/log.c common/base/log.h \
	common/base/mem.c common/base/mem.h \
	common/base/parse.c common/base/parse.h \
	common/base/sock.c common/base/sock.h \
	common/base/sock_message.c \
	common/base/utf8.c common/base/utf8.h
