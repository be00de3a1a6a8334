# Decisions on plain data: who may run, what waits; no process, no descriptor.
noinst_LIBRARIES += libscheduler.a
libscheduler_a_SOURCES = \
	common/scheduler/admission.c common/scheduler/admission.h \
	common/scheduler/broker_config.h \
	common/scheduler/children.c common/scheduler/children.h \
	common/scheduler/memory_room.c common/scheduler/memory_room.h \
	common/scheduler/room_books.c common/scheduler/room_books.h \
	common/scheduler/pool.c common/scheduler/pool.h \
	common/scheduler/pool_books.h \
	common/scheduler/pool_plan.c \
	common/scheduler/pool_settings.c common/scheduler/pool_settings.h \
	common/scheduler/run_queue.c common/scheduler/run_queue.h \
	common/scheduler/runners.c common/scheduler/runners.h \
	common/scheduler/tenant_books.c common/scheduler/tenant_books.h

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/scheduler/unit
endif
tests_unit_scheduler_unit_SOURCES = \
	tests/unit/scheduler/pool_script.h \
	tests/unit/scheduler/pool_world.h \
	tests/unit/scheduler/test_admission.c \
	tests/unit/scheduler/test_children.c \
	tests/unit/scheduler/test_job_limits.c \
	tests/unit/scheduler/test_memory_room.c \
	tests/unit/scheduler/test_room_books.c \
	tests/unit/scheduler/test_pool.c \
	tests/unit/scheduler/test_pool_settings.c \
	tests/unit/scheduler/test_pool_sim.c \
	tests/unit/scheduler/test_run_queue.c \
	tests/unit/scheduler/test_tenant_books.c
