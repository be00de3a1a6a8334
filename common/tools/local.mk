noinst_LIBRARIES += libtools.a
libtools_a_SOURCES = \
	common/tools/args.c common/tools/args.h \
	common/tools/args_schema.c \
	common/tools/box_logs.c common/tools/box_logs.h \
	common/tools/cancel_run.c \
	common/tools/changes.c common/tools/changes.h \
	common/tools/close_sandbox.c \
	common/tools/complete.c common/tools/complete.h \
	common/tools/consent.c common/tools/consent.h \
	common/tools/content_of.c common/tools/content_of.h \
	common/tools/create_upload.c \
	common/tools/delete_file.c \
	common/tools/download_archive.c \
	common/tools/copy_file.c \
	common/tools/copy_project.c \
	common/tools/create_sandbox.c \
	common/tools/delete_conversation.c \
	common/tools/env.c common/tools/env.h \
	common/tools/exec.c \
	common/tools/get_run.c \
	common/tools/import_url.c \
	common/tools/get_sandbox_status.c \
	common/tools/install_package.c \
	common/tools/list.h \
	common/tools/list_files.c \
	common/tools/list_runners.c \
	common/tools/list_runs.c \
	common/tools/local.c common/tools/local.h \
	common/tools/move_file.c \
	common/tools/pictures.c common/tools/pictures.h \
	common/tools/prompt_analyse.c \
	common/tools/prompt_chart.c \
	common/tools/prompt_debug.c \
	common/tools/prompts.c common/tools/prompts.h \
	common/tools/read_file.c \
	common/tools/report.c common/tools/report.h \
	common/tools/reset_session.c \
	common/tools/resources.c \
	common/tools/run_code.c common/tools/run_code.h \
	common/tools/run_files.c common/tools/run_files.h \
	common/tools/run_life.c common/tools/run_life.h \
	common/tools/run_report.c common/tools/run_report.h \
	common/tools/run_tasks.c common/tools/run_tasks.h \
	common/tools/runners.c common/tools/runners.h \
	common/tools/store.c common/tools/store.h \
	common/tools/sandbox_rows.h \
	common/tools/tools.c common/tools/tools.h \
	common/tools/upload_archive.c \
	common/tools/toolset.c common/tools/toolset.h \
	common/tools/profiles/adapt.c common/tools/profiles/adapt.h \
	common/tools/profiles/container.c common/tools/profiles/container.h \
	common/tools/profiles/container_call.c \
	common/tools/profiles/container_copy.c \
	common/tools/profiles/container_id.c common/tools/profiles/container_id.h \
	common/tools/profiles/container_logs.c \
	common/tools/profiles/interpreter_call.c common/tools/profiles/interpreter.h \
	common/tools/profiles/interpreter_charts.c \
	common/tools/profiles/interpreter_files.c \
	common/tools/profiles/interpreter_packages.c \
	common/tools/profiles/interpreter_sessions.c \
	common/tools/profiles/interpreter_telnet.c \
	common/tools/profiles/profiles.h \
	common/tools/profiles/runner.c \
	common/tools/profiles/session.c common/tools/profiles/session.h \
	common/tools/profiles/session_call.c \
	common/tools/profiles/session_files.c \
	common/tools/profiles/session_run.c \
	common/tools/upload_file.c \
	common/tools/uri.c common/tools/uri.h \
	common/tools/wants.c common/tools/wants.h \
	common/tools/write_file.c

# The program that draws charts, as C strings: one line each.
common/tools/profiles/interpreter_charts.$(OBJEXT): common/tools/profiles/charts_py.inc
CLEANFILES += common/tools/profiles/charts_py.inc
EXTRA_DIST += common/tools/profiles/charts.py
common/tools/profiles/charts_py.inc: common/tools/profiles/charts.py
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n",/' $(srcdir)/common/tools/profiles/charts.py >$@

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/test_tools_archives \
	tests/unit/test_tools_args \
	tests/unit/test_tools_files \
	tests/unit/test_tools_links \
	tests/unit/test_tools_list \
	tests/unit/test_tools_prompts \
	tests/unit/test_tools_resources \
	tests/unit/test_tools_run_code \
	tests/unit/test_tools_runs \
	tests/unit/test_tools_talk \
	tests/unit/test_tools_upload_file \
	tests/unit/test_profile_boxes \
	tests/unit/test_profile_names \
	tests/unit/test_profile_runner \
	tests/unit/test_profile_session \
	tests/unit/test_tools_uri \
	tests/unit/test_tools_wants
tests_unit_test_tools_archives_SOURCES = tests/unit/test_tools_archives.c $(TOOLS_FAKES)
tests_unit_test_tools_args_SOURCES = tests/unit/test_tools_args.c \
	tests/fakes/schema.c tests/fakes/schema.h
tests_unit_test_tools_files_SOURCES = tests/unit/test_tools_files.c $(TOOLS_FAKES)
tests_unit_test_tools_links_SOURCES = tests/unit/test_tools_links.c $(TOOLS_FAKES)
tests_unit_test_tools_list_SOURCES = tests/unit/test_tools_list.c $(TOOLS_FAKES)
tests_unit_test_profile_boxes_SOURCES = tests/unit/test_profile_boxes.c $(TOOLS_FAKES)
tests_unit_test_profile_session_SOURCES = tests/unit/test_profile_session.c $(TOOLS_FAKES)
tests_unit_test_profile_runner_SOURCES = tests/unit/test_profile_runner.c $(TOOLS_FAKES) $(ASK_FAKES)
tests_unit_test_tools_prompts_SOURCES = tests/unit/test_tools_prompts.c $(TOOLS_FAKES)
tests_unit_test_tools_resources_SOURCES = tests/unit/test_tools_resources.c $(TOOLS_FAKES)
tests_unit_test_tools_run_code_SOURCES = tests/unit/test_tools_run_code.c $(TOOLS_FAKES)
tests_unit_test_tools_runs_SOURCES = tests/unit/test_tools_runs.c $(TOOLS_FAKES)
tests_unit_test_tools_talk_SOURCES = tests/unit/test_tools_talk.c $(TOOLS_FAKES)
tests_unit_test_tools_upload_file_SOURCES = tests/unit/test_tools_upload_file.c $(TOOLS_FAKES)
endif

FUZZ_TARGETS += tests/fuzz/fuzz_tool_args
tests_fuzz_fuzz_tool_args_SOURCES = tests/fuzz/fuzz_tool_args.c $(TOOLS_FAKES)
tests_fuzz_fuzz_tool_args_LDFLAGS = $(FUZZ_LINK)

FUZZ_TARGETS += tests/fuzz/fuzz_profile
tests_fuzz_fuzz_profile_SOURCES = tests/fuzz/fuzz_profile.c $(TOOLS_FAKES)
tests_fuzz_fuzz_profile_LDFLAGS = $(FUZZ_LINK)

FUZZ_TARGETS += tests/fuzz/fuzz_wants
tests_fuzz_fuzz_wants_LDFLAGS = $(FUZZ_LINK)

FUZZ_TARGETS += tests/fuzz/fuzz_resource
tests_fuzz_fuzz_resource_SOURCES = tests/fuzz/fuzz_resource.c $(TOOLS_FAKES)
tests_fuzz_fuzz_resource_LDFLAGS = $(FUZZ_LINK)
