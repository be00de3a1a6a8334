noinst_LIBRARIES += libengine.a
libengine_a_SOURCES = \
	common/engine/cgroup.c common/engine/cgroup.h \
	common/engine/docker.c \
	common/engine/docker_config.c common/engine/docker_config.h \
	common/engine/docker_container.c \
	common/engine/docker_http.c common/engine/docker_http.h \
	common/engine/docker_list.c common/engine/docker_list.h \
	common/engine/docker_network.c \
	common/engine/docker_commands.c \
	common/engine/docker_self.h \
	common/engine/docker_stream.c common/engine/docker_stream.h \
	common/engine/docker_talk.c \
	common/engine/engine.c common/engine/engine.h \
	common/engine/entry_frame.c common/engine/entry_frame.h \
	common/engine/frame.c common/engine/frame.h

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/engine/unit
endif
FAKE_ENGINE = tests/fakes/fake_engine.c tests/fakes/fake_engine.h tests/fakes/engine_rows.h tests/fakes/engine_run.h
tests_unit_engine_unit_SOURCES = \
	$(FAKE_ENGINE) \
	tests/unit/engine/test_calls.c \
	tests/unit/engine/test_cgroup.c \
	tests/unit/engine/test_config.c \
	tests/unit/engine/test_docker.c \
	tests/unit/engine/test_entry.c \
	tests/unit/engine/test_frame.c \
	tests/unit/engine/test_psandbox.c \
	tests/unit/engine/test_runners.c \
	tests/unit/engine/test_start.c \
	tests/unit/engine/test_warm.c

# Against a real engine, when DOCKER_HOST (or the usual socket) answers; otherwise skipped.
TEST_TARGETS += tests/engine/engine_live
tests_engine_engine_live_SOURCES = tests/engine/engine_live.c tests/engine/live.h \
	tests/engine/live_runs.c tests/engine/live_psandbox.c tests/engine/live_warm.c

FUZZ_TARGETS += \
	tests/fuzz/fuzz_docker_frame \
	tests/fuzz/fuzz_docker_head \
	tests/fuzz/fuzz_entry_frame \
	tests/fuzz/fuzz_images
tests_fuzz_fuzz_docker_frame_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_docker_head_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_entry_frame_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_images_LDFLAGS = $(FUZZ_LINK)

EXTRA_DIST += tests/engine/fixtures
