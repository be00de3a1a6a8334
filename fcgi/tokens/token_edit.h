/* Changes of the file of tokens. */
#pragma once

#include "fcgi/tokens/token_table.h"

/* A token to add. text: of an own one, which moves here if another tenant has it; else unused. */
struct token_added {
    const struct token *token;
    const char *text;
};

/*
 * Takes out the tokens that drop (NULL: none) chooses, adds one (NULL: none), and leaves all other
 * lines as they are. The file is replaced in one step, with its owner and mode, or made with mode
 * 0600; one change at a time. A link at path must have been followed. *out_dropped: what drop has
 * chosen, the caller's (may be NULL without drop). *out_changed: false: the file said so already,
 * and is not touched. *e names file and line.
 */
int token_edit(const char *path, const struct token_added *add,
               bool (*drop)(const void *ctx, const struct token *token), const void *ctx,
               struct token_list *out_dropped, bool *out_changed, struct err *e);
