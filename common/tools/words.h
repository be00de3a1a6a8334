/*
 * Results in words, for models, which pay for each: sizes, times, files. The words of
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

/* "512 bytes", "22 kB", "1.5 MB", "2.5 GB" */
void words_size(struct buf *out, uint64_t bytes);
/* "64 MB", "1 GB": of a limit, as settings have it (1 GB: 1024 MB) */
void words_binary_size(struct buf *out, uint64_t bytes);
/* "0.2 s", "31 s" */
void words_time(struct buf *out, int64_t ms);

/* Of two names, with numbers as numbers: figure-2 before figure-10. */
int words_compare_names(const char *a, const char *b);

/* The rows of files ({name, size, url?, change?}) with what people want first: documents, pictures
 * and tables, then what is not in a folder, what is new, and by name. New reference. */
json_t *words_sorted(const json_t *files);

/* What the links of files have in front of their names; len 0: nothing in common. */
struct words_base {
    const char *url; /* of a row */
    size_t len;
};

/* Of the first n rows; nothing for a single link. */
struct words_base words_base_of(const json_t *files, size_t n);
/* A line, which says the base once. */
void words_say_base(struct mcp_result *out, const struct words_base *base);
/* Appends what a row's link has beyond the base, unless that is its name: ": https://…" */
void words_link(struct buf *line, const json_t *file, const struct words_base *base);

struct words_files {
    size_t omitted; /* further files that are in no row */
    bool full;      /* all rows with their sizes, not the first FILES_SAID */
    bool cut_off;   /* what wrote them was ended */
};

/* Adds a line for each row, sorted, and how many more there are. */
#define FILES_SAID 10
void words_files(struct mcp_result *out, const struct mcp_tool_call *c, const json_t *files,
                 const struct words_files *how);

/* One line: name, size, link. */
void words_file(struct mcp_result *out, const json_t *file);

/* Of {files, names}: how many files were unpacked, and the first names. */
void words_unpacked(struct mcp_result *out, const json_t *unpacked);
