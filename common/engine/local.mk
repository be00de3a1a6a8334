noinst_LIBRARIES += libengine.a
libengine_a_SOURCES = \
	common/engine/docker.c \
	common/engine/docker.h \
	common/engine/docker_address.c \
	common/engine/docker_address.h \
	common/engine/docker_container.c \
	common/engine/docker_container.h \
	common/engine/docker_frame.c \
	common/engine/docker_frame.h \
	common/engine/docker_head.c \
	common/engine/docker_http.c \
	common/engine/docker_http.h \
	common/engine/docker_reap.c \
	common/engine/docker_reap.h \
	common/engine/docker_run.c \
	common/engine/docker_runners.c \
	common/engine/docker_runners.h \
	common/engine/docker_stream.c \
	common/engine/docker_stream.h \
	common/engine/docker_talk.c \
	common/engine/docker_talk.h \
	common/engine/engine.c \
	common/engine/engine.h \
	common/engine/entry_frame.c \
	common/engine/entry_frame.h
