# Everything but main in a library, so that tests can link it; the conformance suite's program brings a registry of its own.
noinst_LIBRARIES += libfront.a
libfront_a_SOURCES = \
	fcgi/app.c fcgi/app.h \
	fcgi/backup.c \
	fcgi/command_line.c fcgi/command_line.h \
	fcgi/call_log.c fcgi/call_log.h \
	fcgi/commands.h \
	fcgi/doctor/check.c fcgi/doctor/check.h \
	fcgi/doctor/denials.c fcgi/doctor/denials.h \
	fcgi/doctor/doctor.c \
	fcgi/doctor/findings.c fcgi/doctor/findings.h \
	fcgi/doctor/prove.c fcgi/doctor/prove.h \
	fcgi/doctor/prove_walls.c fcgi/doctor/prove_walls.h \
	fcgi/doctor/store.c fcgi/doctor/store.h \
	fcgi/doctor/weak.c fcgi/doctor/weak.h \
	fcgi/doctor/web.c fcgi/doctor/web.h \
	fcgi/http/fastcgi.c fcgi/http/fastcgi.h \
	fcgi/http/file_types.c fcgi/http/file_types.h \
	fcgi/http/http.c \
	fcgi/http/http_answer.c fcgi/http/http_answer.h \
	fcgi/http/http_conditions.c fcgi/http/http_conditions.h \
	fcgi/http/http_files.c \
	fcgi/http/body_pace.c fcgi/http/body_pace.h \
	fcgi/http/http_links.c \
	fcgi/http/http_request.c fcgi/http/http_request.h \
	fcgi/http/http_who.c \
	fcgi/hub/events.c fcgi/hub/events.h \
	fcgi/hub/fcgi_record.c fcgi/hub/fcgi_record.h \
	fcgi/hub/hub.c \
	fcgi/hub/hub_jobs.c \
	fcgi/hub/hub_stream.c fcgi/hub/hub_stream.h \
	fcgi/nodes/command.c \
	fcgi/nodes/kubernetes.c fcgi/nodes/kubernetes.h \
	fcgi/nodes/nodes.c fcgi/nodes/nodes.h \
	fcgi/nodes/render.c fcgi/nodes/render.h \
	fcgi/nodes/sources.c fcgi/nodes/sources.h \
	fcgi/nodes/swarm.c fcgi/nodes/swarm.h \
	fcgi/oauth/grant.c fcgi/oauth/grant.h \
	fcgi/oauth/judge.c fcgi/oauth/judge.h \
	fcgi/oauth/jwks.c fcgi/oauth/jwks.h \
	fcgi/oauth/jwt.c fcgi/oauth/jwt.h \
	fcgi/oauth/judge_serve.c fcgi/oauth/judge_serve.h \
	fcgi/oauth/judge_ask.c \
	fcgi/oauth/oauth_settings.c fcgi/oauth/oauth_settings.h \
	fcgi/oauth/provider.c fcgi/oauth/provider.h \
	fcgi/oauth/resource.c fcgi/oauth/resource.h \
	fcgi/oauth/verdicts.c fcgi/oauth/verdicts.h \
	fcgi/oauth/server/attempts.c fcgi/oauth/server/attempts.h \
	fcgi/oauth/server/authorize.c \
	fcgi/oauth/server/clients.c fcgi/oauth/server/clients.h \
	fcgi/oauth/server/command.c \
	fcgi/oauth/server/documents.c fcgi/oauth/server/documents.h \
	fcgi/oauth/server/exchange.c fcgi/oauth/server/exchange.h \
	fcgi/oauth/server/form.c fcgi/oauth/server/form.h \
	fcgi/oauth/server/grant_list.c fcgi/oauth/server/grant_list.h \
	fcgi/oauth/server/grants.c fcgi/oauth/server/grants.h \
	fcgi/oauth/server/page.c fcgi/oauth/server/page.h \
	fcgi/oauth/server/once.c fcgi/oauth/server/once.h \
	fcgi/oauth/server/passphrase.c fcgi/oauth/server/passphrase.h \
	fcgi/oauth/server/server.c fcgi/oauth/server/server.h \
	fcgi/oauth/server/signing_key.c fcgi/oauth/server/signing_key.h \
	fcgi/oauth/server/store.c fcgi/oauth/server/store.h \
	fcgi/oauth/server/tokens.c \
	fcgi/oauth/server/uri.c fcgi/oauth/server/uri.h \
	fcgi/process/broker.c \
	fcgi/process/calls.c fcgi/process/calls.h \
	fcgi/process/control.c fcgi/process/control.h \
	fcgi/process/drain.c \
	fcgi/process/guard.c \
	fcgi/process/handed.c fcgi/process/handed.h \
	fcgi/process/handover.c fcgi/process/handover.h \
	fcgi/process/settings_check.c fcgi/process/settings_check.h \
	fcgi/process/master.c fcgi/process/master.h \
	fcgi/process/metrics_serve.c \
	fcgi/process/orders.c \
	fcgi/process/resources.c fcgi/process/resources.h \
	fcgi/process/sockets.c fcgi/process/sockets.h \
	fcgi/process/status.c \
	fcgi/process/takeover.c fcgi/process/takeover.h \
	fcgi/registry.c fcgi/registry.h \
	fcgi/settings.c fcgi/settings.h \
	fcgi/settings_load.c \
	fcgi/setup.c \
	fcgi/tokens/token_command.c \
	fcgi/tokens/token_edit.c fcgi/tokens/token_edit.h \
	fcgi/tokens/token_rows.c fcgi/tokens/token_rows.h \
	fcgi/tokens/token_table.c fcgi/tokens/token_table.h \
	fcgi/stdio/desktop.c fcgi/stdio/desktop.h \
	fcgi/stdio/stdio.c \
	fcgi/stdio/stdio_calls.c fcgi/stdio/stdio_calls.h \
	fcgi/stdio/stdio_lines.c fcgi/stdio/stdio_lines.h \
	fcgi/way.c fcgi/way.h
# PKGLIBEXECDIR: where "make install" puts the scripts that commands execute (nginx/, runners/).
libfront_a_CPPFLAGS = $(AM_CPPFLAGS) $(FCGI_CFLAGS) -DPKGLIBEXECDIR='"$(pkglibexecdir)"' \
	-DOAUTH_SOURCES='"$(srcdir)/fcgi/oauth/server"'
OAUTH_TEXTS = fcgi/oauth/server/consent.css fcgi/oauth/server/consent.html
EXTRA_DIST += $(OAUTH_TEXTS)
fcgi/oauth/server/libfront_a-page.$(OBJEXT): $(OAUTH_TEXTS)

bin_PROGRAMS += sandcgi
sandcgi_SOURCES = fcgi/main.c
sandcgi_CPPFLAGS = $(AM_CPPFLAGS) $(FCGI_CFLAGS)
sandcgi_LDADD = libfront.a $(LDADD) $(FCGI_LIBS)

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/fcgi/unit
endif
FCGI_CLIENT = tests/fakes/fcgi_client.c tests/fakes/fcgi_client.h
tests_unit_fcgi_unit_SOURCES = \
	$(FCGI_CLIENT) \
	tests/unit/fcgi/oauth_signer.h \
	tests/unit/fcgi/test_body_pace.c \
	tests/unit/fcgi/test_calls.c \
	tests/unit/fcgi/test_conditions.c \
	tests/unit/fcgi/test_denials.c \
	tests/unit/fcgi/test_fcgi_record.c \
	tests/unit/fcgi/test_handed.c \
	tests/unit/fcgi/test_http.c \
	tests/unit/fcgi/test_hub.c \
	tests/unit/fcgi/test_hub_serve.c \
	tests/unit/fcgi/test_judge.c \
	tests/unit/fcgi/test_master.c \
	tests/unit/fcgi/test_orders.c \
	tests/unit/fcgi/test_nodes.c \
	tests/unit/fcgi/test_oauth_endpoints.c \
	tests/unit/fcgi/test_oauth_server.c \
	tests/unit/fcgi/test_oauth_tokens.c \
	tests/unit/fcgi/test_prove.c \
	tests/unit/fcgi/test_resources.c \
	tests/unit/fcgi/test_rights.c \
	tests/unit/fcgi/test_settings.c \
	tests/unit/fcgi/test_status.c \
	tests/unit/fcgi/test_stdio.c \
	tests/unit/fcgi/test_tokens.c \
	tests/unit/fcgi/test_way.c \
	tests/unit/fcgi/test_weak.c
tests_unit_fcgi_unit_LDADD = libfront.a $(LDADD)

FUZZ_TARGETS += tests/fuzz/fuzz_denials tests/fuzz/fuzz_fcgi_record tests/fuzz/fuzz_http tests/fuzz/fuzz_jwt tests/fuzz/fuzz_nodes tests/fuzz/fuzz_tokens tests/fuzz/fuzz_oauth_form
tests_fuzz_fuzz_denials_LDADD = libfront.a $(LDADD)
tests_fuzz_fuzz_denials_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_oauth_form_LDADD = libfront.a $(LDADD)
tests_fuzz_fuzz_oauth_form_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_fcgi_record_LDADD = libfront.a $(LDADD)
tests_fuzz_fuzz_fcgi_record_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_http_LDADD = libfront.a $(LDADD)
tests_fuzz_fuzz_http_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_jwt_LDADD = libfront.a $(LDADD)
tests_fuzz_fuzz_jwt_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_nodes_LDADD = libfront.a $(LDADD)
tests_fuzz_fuzz_nodes_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_tokens_LDADD = libfront.a $(LDADD)
tests_fuzz_fuzz_tokens_LDFLAGS = $(FUZZ_LINK)

EXTRA_DIST += fcgi/monitoring/alerts.yml fcgi/monitoring/dashboard.json

dist_man_MANS = fcgi/sandcgi.1 fcgi/sandcgi.conf.5 fcgi/sandcgi-oauth.7 fcgi/sandcgi-cluster.7 fcgi/sandcgi-runners.7

# Puts the settings, as the program knows them, into the documentation; tests/lint/settings.sh compares.
settings-docs: sandcgi$(EXEEXT)
	./sandcgi$(EXEEXT) settings > settings-docs.md && ./sandcgi$(EXEEXT) settings --man > settings-docs.man
	cd $(srcdir)/fcgi && sed -i -e '/^<!-- settings:/,/^<!-- \/settings/{/^<!-- /!d}' \
		-e '/^<!-- settings:/r $(abs_builddir)/settings-docs.md' settings.md
	cd $(srcdir)/fcgi && sed -i -e '/^\.\\" settings:/,/^\.\\" \/settings/{/^\.\\" /!d}' \
		-e '/^\.\\" settings:/r $(abs_builddir)/settings-docs.man' sandcgi.conf.5
	rm -f settings-docs.md settings-docs.man

.PHONY: settings-docs
