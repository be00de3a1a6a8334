/* The tokens that workers check themselves (SANDCGI_AUTH=token), in memory that the master fills
 * and its workers read. */
#pragma once

#include "fcgi/tokens/token_rows.h"

struct token_table;

/* A file's tokens. */
struct token_list {
    struct token *items;
    size_t n;
};

/* Reads the file; *e names it and the line. */
int token_list_read(const char *path, struct token_list *out, struct err *e);
/* Copies the token; ERR_LIMIT: there are TOKENS_MAX. */
int token_list_add(struct token_list *list, const struct token *token, struct err *e);
void token_list_clear(struct token_list *list);

/* With the file at path ("": none), and api_token ("": none) of the tenant "default". NULL: *e
 * names file and line. Children that are forked share it. */
struct token_table *token_table_new(const char *path, const char *api_token, struct err *e);
void token_table_free(struct token_table *t);

/* Reads the file again if it has changed; a file that cannot be read or has a wrong line is logged
 * once, and the tokens stay. In the process that made the table only. */
void token_table_look(struct token_table *t);

/* In a child: it can read the table from now on, and never write it. */
int token_table_confine(struct token_table *t, struct err *e);

enum token_verdict { TOKEN_UNKNOWN, TOKEN_EXPIRED, TOKEN_GOOD };
/* Finds the token that a client sends; *out is set unless it is unknown. The time does not depend
 * on how much of a digest is right. */
enum token_verdict token_table_find(const struct token_table *t, const char *text,
                                    struct token *out);
