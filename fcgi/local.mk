# Everything but main in a library, so that tests can link it; the conformance suite's program brings a registry of its own.
noinst_LIBRARIES += libfront.a
libfront_a_SOURCES = \
	fcgi/account.c fcgi/account.h \
	fcgi/app.c fcgi/app.h \
	fcgi/broker_config.c fcgi/broker_config.h \
	fcgi/cgi.c fcgi/cgi.h \
	fcgi/events.c fcgi/events.h \
	fcgi/fastcgi.c fcgi/fastcgi.h \
	fcgi/http.c fcgi/http.h \
	fcgi/http_archive.c fcgi/http_archive.h \
	fcgi/http_answer.c fcgi/http_answer.h \
	fcgi/http_guard.c fcgi/http_guard.h \
	fcgi/http_request.c fcgi/http_request.h \
	fcgi/http_stream.c fcgi/http_stream.h \
	fcgi/hub.c fcgi/hub.h \
	fcgi/hub_door.c fcgi/hub_door.h \
	fcgi/hub_stream.c fcgi/hub_stream.h \
	fcgi/link_check.c fcgi/link_check.h \
	fcgi/listen.c fcgi/listen.h \
	fcgi/master.c fcgi/master.h \
	fcgi/private_broker.c fcgi/private_broker.h \
	fcgi/registry.c fcgi/registry.h \
	fcgi/run_news.c fcgi/run_news.h \
	fcgi/sessions_dir.c fcgi/sessions_dir.h \
	fcgi/settings.c fcgi/settings.h \
	fcgi/status.c fcgi/status.h \
	fcgi/stdio.c fcgi/stdio.h \
	fcgi/stdio_inbox.c fcgi/stdio_inbox.h \
	fcgi/stop.c fcgi/stop.h \
	fcgi/upload.c fcgi/upload.h
libfront_a_CPPFLAGS = $(AM_CPPFLAGS) $(FCGI_CFLAGS)

bin_PROGRAMS += sandcgi
sandcgi_SOURCES = fcgi/main.c
sandcgi_CPPFLAGS = $(AM_CPPFLAGS) $(FCGI_CFLAGS)
sandcgi_LDADD = libfront.a $(LDADD) $(FCGI_LIBS)

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/test_front_http tests/unit/test_front_hub tests/unit/test_front_status
tests_unit_test_front_http_LDADD = libfront.a $(LDADD)
tests_unit_test_front_hub_LDADD = libfront.a $(LDADD)
tests_unit_test_front_status_LDADD = libfront.a $(LDADD)
endif

FUZZ_TARGETS += tests/fuzz/fuzz_http
tests_fuzz_fuzz_http_LDADD = libfront.a $(LDADD)
tests_fuzz_fuzz_http_LDFLAGS = $(FUZZ_LINK)
