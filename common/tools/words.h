/*
 * Results in words, for models, which pay for each: sizes, texts that are cut, files. The words of
 * a run are in runs/run_words.c.
 */
#pragma once

#include "common/mcp/features/tool.h"
#include "common/tools/args.h"

#include <jansson.h>
#include <stdint.h>

/* detail of a tool; its struct has the member detail. */
#define DETAIL_ROW(arguments)                                                                      \
    ARG_ROW(                                                                                       \
        arguments, detail, "detail", ARG_STRING, .max = 16, .choices = detail_choices,             \
        .listed = args_unlisted,                                                                   \
        .help = "full: everything that is known, and long output whole; concise when left out.")

json_t *detail_choices(const struct tools_app *app, const char *wanted);
bool detail_is_full(const char *detail);

/* The bytes of output, of a file or of a list that the text may hold. */
size_t detail_room(const struct mcp_tool_call *c, const char *detail);

/* What stands before the name of a tool in a text (TOOLS_PREFIX); "": nothing. */
const char *words_prefix(const struct mcp_tool_call *c);

/* "512 bytes", "22 kB", "1.5 MB" */
void words_size(struct buf *out, uint64_t bytes);
/* "64 MB", "1 GB": of a limit, as settings have it (1 GB: 1024 MB) */
void words_binary_size(struct buf *out, uint64_t bytes);
/* "0.2 s", "31 s" */
void words_time(struct buf *out, int64_t ms);

/* Appends text that a program printed; over room bytes its head and its tail, with a line about the
 * rest between them. Returns the length of the head, 0: all is there. */
size_t words_cut(struct buf *out, const char *text, size_t len, size_t room);

/* Adds a line for each row of files ({name, size, url?, change?}), those that matter most first and
 * at most FILES_SAID of them, unless full (with sizes); and how many more there are, omitted among
 * them. */
#define FILES_SAID 10
void words_files(struct mcp_result *out, const struct mcp_tool_call *c, const json_t *files,
                 json_int_t omitted, bool full);

/* One line: name, size, link. */
void words_file(struct mcp_result *out, const json_t *file);

/* Of {files, names}: how many files were unpacked, and the first names. */
void words_unpacked(struct mcp_result *out, const json_t *unpacked);
