noinst_LIBRARIES += libtools.a
libtools_a_SOURCES = \
	common/tools/args.c common/tools/args.h \
	common/tools/args_schema.c \
	common/tools/env.c common/tools/env.h \
	common/tools/list.h \
	common/tools/list_runners.c \
	common/tools/pictures.c common/tools/pictures.h \
	common/tools/report.c common/tools/report.h \
	common/tools/run_code.c common/tools/run_code.h \
	common/tools/run_files.c common/tools/run_files.h \
	common/tools/runners.c common/tools/runners.h \
	common/tools/tools.c common/tools/tools.h \
	common/tools/upload_file.c
