noinst_LIBRARIES += libengine.a
libengine_a_SOURCES = \
	common/engine/docker.c common/engine/docker.h \
	common/engine/docker_address.c common/engine/docker_address.h \
	common/engine/docker_attend.c common/engine/docker_attend.h \
	common/engine/docker_box.c \
	common/engine/docker_container.c common/engine/docker_container.h \
	common/engine/docker_frame.c common/engine/docker_frame.h \
	common/engine/docker_head.c \
	common/engine/docker_http.c common/engine/docker_http.h \
	common/engine/docker_reap.c common/engine/docker_reap.h \
	common/engine/docker_run.c \
	common/engine/docker_runners.c common/engine/docker_runners.h \
	common/engine/docker_stay.c \
	common/engine/docker_stream.c common/engine/docker_stream.h \
	common/engine/docker_talk.c common/engine/docker_talk.h \
	common/engine/docker_waiting.c \
	common/engine/engine.c common/engine/engine.h \
	common/engine/entry_frame.c common/engine/entry_frame.h \
	common/engine/stay_frame.c common/engine/stay_frame.h

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/test_engine_calls \
	tests/unit/test_engine_container \
	tests/unit/test_engine_docker \
	tests/unit/test_engine_entry \
	tests/unit/test_engine_frame \
	tests/unit/test_engine_runners \
	tests/unit/test_engine_start \
	tests/unit/test_engine_stay \
	tests/unit/test_engine_waiting
FAKE_ENGINE = tests/fakes/fake_engine.c tests/fakes/fake_engine.h tests/fakes/engine_rows.h
tests_unit_test_engine_calls_SOURCES = tests/unit/test_engine_calls.c $(FAKE_ENGINE)
tests_unit_test_engine_docker_SOURCES = tests/unit/test_engine_docker.c $(FAKE_ENGINE)
tests_unit_test_engine_start_SOURCES = tests/unit/test_engine_start.c $(FAKE_ENGINE)
tests_unit_test_engine_stay_SOURCES = tests/unit/test_engine_stay.c $(FAKE_ENGINE)
tests_unit_test_engine_waiting_SOURCES = tests/unit/test_engine_waiting.c $(FAKE_ENGINE)
endif

# Against a real engine, when DOCKER_HOST (or the usual socket) answers; otherwise skipped.
check_PROGRAMS += tests/engine/engine_live
tests_engine_engine_live_SOURCES = tests/engine/engine_live.c tests/engine/live.h \
	tests/engine/live_runs.c tests/engine/live_stay.c tests/engine/live_waiting.c

FUZZ_TARGETS += \
	tests/fuzz/fuzz_docker_frame \
	tests/fuzz/fuzz_docker_head \
	tests/fuzz/fuzz_entry_frame \
	tests/fuzz/fuzz_images \
	tests/fuzz/fuzz_stay_frame
tests_fuzz_fuzz_docker_frame_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_docker_head_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_entry_frame_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_images_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_stay_frame_LDFLAGS = $(FUZZ_LINK)

EXTRA_DIST += tests/engine/fixtures
