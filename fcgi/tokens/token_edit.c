#include "config.h"

#include "fcgi/tokens/token_edit.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE "# Tokens, written by sandcgi token. Confidential.\n"

struct edit {
    const char *path;
    const struct token_added *add;
    bool (*drop)(const void *ctx, const struct token *token);
    const void *ctx;
    struct token_list *dropped;
    bool is_there; /* what is to be added, as it is to be */
};

/* Returns a descriptor that holds the lock. */
static int lock_folder(const char *path, struct err *e)
{
    AUTO_FREE char *copy = mem_strdup(path);
    AUTO_FD int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        return err_errno(e, "the folder of %s", path);
    return TAKE_FD(fd);
}

static int replace_file(const char *path, const struct buf *text, struct err *e)
{
    if (!buf_ok(text))
        return err_set(e, ERR_LIMIT, "%s would be larger than %u bytes", path, TOKENS_FILE_MAX);
    return fdio_replace_file(path, text, 0600, e);
}

/* "" when there is no file yet. */
static int read_text(const char *path, struct buf *out, struct err *e)
{
    struct err cause = ERR_INIT;

    if (fdio_read_file(path, out, &cause) == 0)
        return 0;
    return cause.kind == ERR_NOT_FOUND ? 0 : err_set(e, cause.kind, "%s", cause.text);
}

/* 1: the line goes; 0: it stays. */
static int judge(struct edit *d, const struct token *t, struct err *e)
{
    const struct token *next = d->add ? d->add->token : NULL;

    if (next && next->own == t->own && strcmp(next->id, t->id) == 0) {
        if (!next->own)
            return err_set(e, ERR_EXISTS, "the new token's id is taken; try again");
        d->is_there = strcmp(next->tenant, t->tenant) == 0 && next->scopes == t->scopes;
        return !d->is_there;
    }
    if (!d->drop || !d->drop(d->ctx, t))
        return 0;
    return token_list_add(d->dropped, t, e) < 0 ? -1 : 1;
}

/* Changes text. */
static int copy_lines(struct edit *d, char *text, struct buf *out, struct err *e)
{
    struct token token;
    unsigned number = 0;
    size_t n = d->add ? 1 : 0;

    for (char *line; text && (line = strsep(&text, "\n"));) {
        int rc = token_row_parse(line, &token, e);
        number++;
        if (rc < 0)
            return err_wrap(e, "%s, line %u", d->path, number);
        if (rc > 0 && ++n > TOKENS_MAX)
            return err_set(e, ERR_LIMIT, "%s has %d tokens, which is the most", d->path,
                           TOKENS_MAX);
        if (rc > 0 && (rc = judge(d, &token, e)) < 0)
            return -1;
        if (rc == 0 && (text || *line)) /* not the empty end behind the last newline */
            buf_addf(out, "%s\n", line);
    }
    return 0;
}

static int edit_text(struct edit *d, const char *old, struct buf *out, struct err *e)
{
    AUTO_FREE char *copy = mem_strdup(old);
    int rc = copy_lines(d, copy, out, e);

    explicit_bzero(copy, strlen(old));
    if (rc < 0 || !d->add || d->is_there)
        return rc;
    if (!*old)
        buf_add_str(out, FIRST_LINE);
    if (d->add->token->own)
        token_own_row_write(d->add->token, d->add->text, out);
    else
        token_row_write(d->add->token, out);
    return 0;
}

int token_edit(const char *path, const struct token_added *add,
               bool (*drop)(const void *ctx, const struct token *token), const void *ctx,
               struct token_list *out_dropped, bool *out_changed, struct err *e)
{
    AUTO_BUF struct buf old = BUF_INIT(TOKENS_FILE_MAX), new = BUF_INIT(TOKENS_FILE_MAX);
    struct edit d = {path, add, drop, ctx, out_dropped, false};
    AUTO_FD int lock = lock_folder(path, e);
    int rc = -1;

    if (drop)
        *out_dropped = (struct token_list){0};
    if (lock >= 0 && read_text(path, &old, e) == 0 && edit_text(&d, buf_str(&old), &new, e) == 0) {
        *out_changed = strcmp(buf_str(&old), buf_str(&new)) != 0;
        rc = *out_changed ? replace_file(path, &new, e) : 0;
    }
    if (rc < 0 && drop)
        token_list_clear(out_dropped);
    return rc;
}
