# sandcgi with the fixtures of the conformance suite. It brings a registry.c of its own, so that the one in libfront.a
# is not linked; nothing that is installed or run in production contains a fixture.
EXTRA_PROGRAMS += tests/conformance/sandcgi-conformance
tests_conformance_sandcgi_conformance_SOURCES = \
	fcgi/main.c \
	tests/conformance/fixture_asking.c \
	tests/conformance/fixture_content.c \
	tests/conformance/fixture_prompts.c \
	tests/conformance/fixture_resources.c \
	tests/conformance/fixture_rounds.c \
	tests/conformance/fixture_tasks.c \
	tests/conformance/fixture_telling.c \
	tests/conformance/fixtures.c tests/conformance/fixtures.h \
	tests/fakes/mcp_extra.c tests/fakes/mcp_extra.h \
	tests/conformance/registry.c
tests_conformance_sandcgi_conformance_CPPFLAGS = $(sandcgi_CPPFLAGS)
tests_conformance_sandcgi_conformance_LDADD = $(sandcgi_LDADD)
CLEANFILES += tests/conformance/sandcgi-conformance
