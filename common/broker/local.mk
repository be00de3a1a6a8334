noinst_LIBRARIES += libbroker.a
libbroker_a_SOURCES = \
	common/broker/admission.c common/broker/admission.h \
	common/broker/awaited.c common/broker/awaited.h \
	common/broker/births.c \
	common/broker/broker.h \
	common/broker/calls.c \
	common/broker/capture.c common/broker/capture.h \
	common/broker/children.c common/broker/children.h \
	common/broker/claims.c common/broker/claims.h \
	common/broker/client.c common/broker/client.h \
	common/broker/client_links.c common/broker/client_links.h \
	common/broker/client_archive.c common/broker/client_archive.h \
	common/broker/client_boxes.c common/broker/client_boxes.h \
	common/broker/client_call.c common/broker/client_call.h \
	common/broker/client_remove.c common/broker/client_remove.h \
	common/broker/client_files.c common/broker/client_files.h \
	common/broker/company.c common/broker/company.h \
	common/broker/heads.c common/broker/heads.h \
	common/broker/home.c common/broker/home.h \
	common/broker/idle.c common/broker/idle.h \
	common/broker/index_dir.c common/broker/index_dir.h \
	common/broker/job.c common/broker/job.h \
	common/broker/job_archive.c \
	common/broker/job_import.c \
	common/broker/job_links.c \
	common/broker/job_files.c \
	common/broker/job_list.c \
	common/broker/job_stay.c \
	common/broker/job_remove.c \
	common/broker/job_status.c \
	common/broker/keeper.c common/broker/keeper.h \
	common/broker/keeper_link.c common/broker/keeper_link.h \
	common/broker/keeping.c common/broker/keeping.h \
	common/broker/lasting.c \
	common/broker/live.c common/broker/live.h \
	common/broker/live_tell.c common/broker/live_tell.h \
	common/broker/pool.c common/broker/pool.h \
	common/broker/pool_plan.c common/broker/pool_plan.h \
	common/broker/pool_settings.c common/broker/pool_settings.h \
	common/broker/readers.c common/broker/readers.h \
	common/broker/removals.c common/broker/removals.h \
	common/broker/retention_pass.c common/broker/retention_pass.h \
	common/broker/run.c common/broker/run.h \
	common/broker/run_given.c common/broker/run_given.h \
	common/broker/run_look.c common/broker/run_look.h \
	common/broker/run_record.c common/broker/run_record.h \
	common/broker/run_record_list.c \
	common/broker/run_result.c common/broker/run_result.h \
	common/broker/runlock.c common/broker/runlock.h \
	common/broker/server.c common/broker/server.h \
	common/broker/stay.c common/broker/stay.h common/broker/stay_self.h \
	common/broker/stay_asks.c \
	common/broker/stay_channel.c \
	common/broker/stay_engine.c \
	common/broker/stay_exec.c \
	common/broker/stay_record.c common/broker/stay_record.h \
	common/broker/stay_session.c \
	common/broker/stays.c \
	common/broker/supervisor.c common/broker/supervisor.h common/broker/supervisor_self.h \
	common/broker/supervisor_answer.c \
	common/broker/supervisor_channel.c \
	common/broker/supervisor_claim.c \
	common/broker/supervisor_engine.c \
	common/broker/supervisor_events.c \
	common/broker/supervisor_files.c \
	common/broker/supervisor_index.c \
	common/broker/supervisors.c \
	common/broker/warm.c \
	common/broker/watch.c common/broker/watch.h \
	common/broker/wire.c common/broker/wire.h

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/test_broker_admission \
	tests/unit/test_broker_capture \
	tests/unit/test_broker_children \
	tests/unit/test_broker_client \
	tests/unit/test_broker_company \
	tests/unit/test_broker_files \
	tests/unit/test_broker_idle \
	tests/unit/test_broker_keeper \
	tests/unit/test_broker_live \
	tests/unit/test_broker_pool \
	tests/unit/test_broker_pool_settings \
	tests/unit/test_broker_pool_sim \
	tests/unit/test_broker_readers \
	tests/unit/test_broker_record \
	tests/unit/test_broker_run_files \
	tests/unit/test_broker_server \
	tests/unit/test_broker_stay \
	tests/unit/test_broker_stays \
	tests/unit/test_broker_supervisor \
	tests/unit/test_broker_uploads \
	tests/unit/test_broker_wire
FAKE_BOX = tests/fakes/fake_box.c tests/fakes/fake_box.h tests/unit/supervisor_world.h
tests_unit_test_broker_readers_SOURCES = tests/unit/test_broker_readers.c $(FAKE_BOX)
tests_unit_test_broker_server_SOURCES = tests/unit/test_broker_server.c \
	tests/unit/broker_world.h tests/fakes/fake_supervisor.c $(FAKE_ENGINE)
tests_unit_test_broker_stay_SOURCES = tests/unit/test_broker_stay.c \
	tests/fakes/fake_stay.c tests/fakes/fake_stay.h
tests_unit_test_broker_stays_SOURCES = tests/unit/test_broker_stays.c \
	tests/unit/broker_world.h tests/fakes/fake_stays.c tests/fakes/fake_supervisor.c $(FAKE_ENGINE)
tests_unit_test_broker_supervisor_SOURCES = tests/unit/test_broker_supervisor.c $(FAKE_BOX)
endif

EXTRA_DIST += tests/unit/pool_world.h

FUZZ_TARGETS += \
	tests/fuzz/fuzz_broker_head \
	tests/fuzz/fuzz_live
tests_fuzz_fuzz_broker_head_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_fuzz_live_LDFLAGS = $(FUZZ_LINK)
