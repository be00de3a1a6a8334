noinst_LIBRARIES += libtools.a
libtools_a_SOURCES = \
	common/tools/args.c common/tools/args.h \
	common/tools/args_call.c \
	common/tools/args_mend.c common/tools/args_mend.h \
	common/tools/args_schema.c \
	common/tools/args_values.c common/tools/args_values.h \
	common/tools/code_text.c common/tools/code_text.h \
	common/tools/files/archives.c \
	common/tools/files/content.c common/tools/files/content.h \
	common/tools/files/file_tools.c \
	common/tools/files/local.c common/tools/files/local.h \
	common/tools/files/local_copies.c \
	common/tools/files/read_file.c \
	common/tools/files/resources.c \
	common/tools/files/uploads.c \
	common/tools/files/uri.c common/tools/files/uri.h \
	common/tools/list.h \
	common/tools/profiles/adapt.c common/tools/profiles/adapt.h \
	common/tools/profiles/container.c \
	common/tools/profiles/container_call.c common/tools/profiles/container_call.h \
	common/tools/profiles/interpreter.c \
	common/tools/profiles/interpreter_call.h \
	common/tools/profiles/interpreter_files.c \
	common/tools/profiles/runner.c \
	common/tools/profiles/session.c \
	common/tools/profiles/session_call.c common/tools/profiles/session_call.h \
	common/tools/prompts/prompts.c \
	common/tools/runs/advice.c common/tools/runs/advice.h \
	common/tools/runs/gallery.c common/tools/runs/gallery.h \
	common/tools/runs/imports.c common/tools/runs/imports.h \
	common/tools/runs/install_package.c \
	common/tools/runs/permit.c common/tools/runs/permit.h \
	common/tools/runs/picture.c common/tools/runs/picture.h \
	common/tools/runs/printed.c common/tools/runs/printed.h \
	common/tools/runs/run_code.c \
	common/tools/runs/run_files.c common/tools/runs/run_files.h \
	common/tools/runs/run_report.c common/tools/runs/run_report.h \
	common/tools/runs/run_words.c common/tools/runs/run_words.h \
	common/tools/runs/runs.c \
	common/tools/sandboxes/sandboxes.c \
	common/tools/tools.c common/tools/tools.h \
	common/tools/tools_app.c common/tools/tools_app.h \
	common/tools/words.c common/tools/words.h

# Texts that are files, inside the program: assembled into an archive of their own, with the path of the sources.
noinst_LIBRARIES += libschemas.a
libschemas_a_SOURCES = common/tools/schemas.c
libschemas_a_CPPFLAGS = $(AM_CPPFLAGS) -DTOOLS_SOURCES='"$(srcdir)/common/tools"'
TOOLS_TEXTS = \
	common/tools/files/copy_file.json \
	common/tools/files/copy_file_from_sandbox.json \
	common/tools/files/copy_project.json \
	common/tools/files/create_upload.json \
	common/tools/files/delete_conversation.json \
	common/tools/files/delete_file.json \
	common/tools/files/download_archive.json \
	common/tools/files/import_url.json \
	common/tools/files/list_files.json \
	common/tools/files/move_file.json \
	common/tools/files/read_file.json \
	common/tools/files/upload_archive.json \
	common/tools/files/upload_file.json \
	common/tools/files/write_file.json \
	common/tools/profiles/bar_chart.json \
	common/tools/profiles/heatmap.json \
	common/tools/profiles/interactive_chart.json \
	common/tools/profiles/line_chart.json \
	common/tools/profiles/scatter_plot.json \
	common/tools/profiles/session_close.json \
	common/tools/profiles/session_list.json \
	common/tools/profiles/session_read.json \
	common/tools/profiles/session_run.json \
	common/tools/profiles/session_upload.json \
	common/tools/runs/list_runners.json \
	common/tools/runs/list_runs.json \
	common/tools/runs/run.json \
	common/tools/sandboxes/get_sandbox_status.json \
	common/tools/sandboxes/reset_session.json \
	common/tools/sandboxes/sandbox.json \
	common/tools/prompts/analyse_data_file.md \
	common/tools/prompts/debug_program.md \
	common/tools/prompts/make_chart.md \
	common/tools/profiles/charts.py
EXTRA_DIST += $(TOOLS_TEXTS)
common/tools/libschemas_a-schemas.$(OBJEXT): $(TOOLS_TEXTS)

if HAVE_CMOCKA
TEST_TARGETS += tests/unit/tools/unit
endif
tests_unit_tools_unit_SOURCES = \
	$(ASK_FAKES) \
	$(TOOLS_FAKES) \
	tests/unit/tools/test_advice.c \
	tests/unit/tools/test_archives.c \
	tests/unit/tools/test_args.c \
	tests/unit/tools/test_args_mend.c \
	tests/unit/tools/test_client.c \
	tests/unit/tools/test_code_text.c \
	tests/unit/tools/test_files.c \
	tests/unit/tools/test_imports.c \
	tests/unit/tools/test_links.c \
	tests/unit/tools/test_list.c \
	tests/unit/tools/test_local.c \
	tests/unit/tools/test_picture.c \
	tests/unit/tools/test_printed.c \
	tests/unit/tools/test_profile_names.c \
	tests/unit/tools/test_profile_psandboxes.c \
	tests/unit/tools/test_profile_runner.c \
	tests/unit/tools/test_profile_session.c \
	tests/unit/tools/test_prompts.c \
	tests/unit/tools/test_resources.c \
	tests/unit/tools/test_routes.c \
	tests/unit/tools/test_run_code.c \
	tests/unit/tools/test_runs.c \
	tests/unit/tools/test_upload_file.c \
	tests/unit/tools/test_uri.c \
	tests/unit/tools/test_words.c \
	tests/unit/tools/tools_fixture.h

FUZZ_TARGETS += tests/fuzz/fuzz_tool_args
tests_fuzz_fuzz_tool_args_SOURCES = tests/fuzz/fuzz_tool_args.c $(TOOLS_FAKES)
tests_fuzz_fuzz_tool_args_LDFLAGS = $(FUZZ_LINK)

FUZZ_TARGETS += tests/fuzz/fuzz_profile
tests_fuzz_fuzz_profile_SOURCES = tests/fuzz/fuzz_profile.c $(TOOLS_FAKES)
tests_fuzz_fuzz_profile_LDFLAGS = $(FUZZ_LINK)

FUZZ_TARGETS += tests/fuzz/fuzz_imports
tests_fuzz_fuzz_imports_LDFLAGS = $(FUZZ_LINK)

FUZZ_TARGETS += tests/fuzz/fuzz_code_text
tests_fuzz_fuzz_code_text_LDFLAGS = $(FUZZ_LINK)

FUZZ_TARGETS += tests/fuzz/fuzz_resource
tests_fuzz_fuzz_resource_SOURCES = tests/fuzz/fuzz_resource.c $(TOOLS_FAKES)
tests_fuzz_fuzz_resource_LDFLAGS = $(FUZZ_LINK)

FUZZ_TARGETS += tests/fuzz/fuzz_picture
tests_fuzz_fuzz_picture_LDFLAGS = $(FUZZ_LINK)

FUZZ_TARGETS += tests/fuzz/fuzz_printed
tests_fuzz_fuzz_printed_LDFLAGS = $(FUZZ_LINK)
