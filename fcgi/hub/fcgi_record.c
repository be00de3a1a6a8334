#include "config.h"

#include "fcgi/hub/fcgi_record.h"

#include <string.h>

#define FCGI_VERSION  1
#define BEGIN_REQUEST 1
#define ABORT_REQUEST 2
#define END_REQUEST   3
#define PARAMS        4
#define STDIN         5
#define RESPONDER     1
#define LONG_LENGTH   0x80000000u /* marks one of four bytes */
#define CONTENT_MAX   65536       /* of a record that is read; rounded up */

/* ---- writing ---- */

void fcgi_record_add(struct buf *out, int type, int request_id, const void *data, size_t len)
{
    const unsigned char head[FCGI_RECORD_HEAD] = {FCGI_VERSION,
                                                  (unsigned char)type,
                                                  (unsigned char)((unsigned)request_id >> 8),
                                                  (unsigned char)request_id,
                                                  (unsigned char)(len >> 8),
                                                  (unsigned char)len};

    buf_add(out, head, sizeof head);
    buf_add(out, data, len);
}

void fcgi_record_add_end(struct buf *out, int request_id)
{
    static const unsigned char request_complete[8];

    fcgi_record_add(out, FCGI_STDOUT, request_id, "", 0);
    fcgi_record_add(out, END_REQUEST, request_id, request_complete, sizeof request_complete);
}

static void add_length(struct buf *out, size_t len)
{
    if (len < 0x80)
        buf_add_char(out, (char)len);
    else
        buf_add_u32(out, LONG_LENGTH | (uint32_t)len);
}

void fcgi_record_add_question(struct buf *out, int request_id, const char *name, const char *value)
{
    static const unsigned char responder[8] = {0, RESPONDER};
    AUTO_BUF struct buf pair = BUF_INIT(FCGI_RECORD_MAX);

    add_length(&pair, strlen(name));
    add_length(&pair, strlen(value));
    buf_add_str(&pair, name);
    buf_add_str(&pair, value);
    fcgi_record_add(out, BEGIN_REQUEST, request_id, responder, sizeof responder);
    fcgi_record_add(out, PARAMS, request_id, pair.data, pair.len);
    fcgi_record_add(out, PARAMS, request_id, "", 0);
    fcgi_record_add(out, STDIN, request_id, "", 0);
    out->failed = out->failed || !buf_ok(&pair);
}

/* ---- reading ---- */

void fcgi_reader_init(struct fcgi_reader *r, size_t body_max)
{
    *r = (struct fcgi_reader){.params = BUF_INIT(FCGI_PARAMS_MAX),
                              .body = BUF_INIT(body_max + CONTENT_MAX)};
}

void fcgi_reader_clear(struct fcgi_reader *r)
{
    buf_clear(&r->params);
    buf_clear(&r->body);
}

/* One or four bytes; -1: they are cut off. */
static int take_length(const unsigned char **at, const unsigned char *end, size_t *out)
{
    const unsigned char *p = *at;

    if (p < end && p[0] < 0x80) {
        *out = p[0];
        *at = p + 1;
        return 0;
    }
    if (end - p < 4)
        return -1;
    *out = u32_get(p) & ~LONG_LENGTH;
    *at = p + 4;
    return 0;
}

/* From the protocol's pairs to strings, which take no more room than the pairs' lengths did. */
static int params_decode(struct fcgi_reader *r, struct err *e)
{
    struct buf pairs = r->params;
    const unsigned char *at = (const unsigned char *)buf_str(&pairs), *end = at + pairs.len;
    int result = 0;

    r->params = BUF_INIT(FCGI_PARAMS_MAX);
    while (at < end && result == 0) {
        size_t name, value;
        if (take_length(&at, end, &name) < 0 || take_length(&at, end, &value) < 0 ||
            name > (size_t)(end - at) || value > (size_t)(end - at) - name) {
            result = err_set(e, ERR_INVALID, "FastCGI: a parameter is cut off");
        } else if (memchr(at, '\0', name + value)) {
            result = err_set(e, ERR_INVALID, "FastCGI: a parameter holds a NUL");
        } else {
            buf_add(&r->params, at, name);
            buf_add_char(&r->params, '\0');
            buf_add(&r->params, at + name, value);
            buf_add_char(&r->params, '\0');
            at += name + value;
        }
    }
    buf_clear(&pairs);
    r->has_params = result == 0;
    return result;
}

/* The head of a record is complete. */
static int on_head(struct fcgi_reader *r, struct err *e)
{
    const unsigned char *h = r->head;
    int type = h[1], id = h[2] << 8 | h[3];

    r->content = (size_t)h[4] << 8 | h[5];
    r->padding = h[6];
    if (h[0] != FCGI_VERSION)
        return err_set(e, ERR_INVALID, "FastCGI: version %d is not supported", h[0]);
    if (type == BEGIN_REQUEST && r->request_id == 0 && id > 0 && r->content == sizeof r->begin) {
        r->request_id = id;
        return 0;
    }
    if (type == ABORT_REQUEST)
        return err_set(e, ERR_CANCELLED, "FastCGI: the request was aborted");
    if (r->request_id == 0 || id != r->request_id || type != (r->has_params ? STDIN : PARAMS))
        return err_set(e, ERR_INVALID, "FastCGI: record of type %d of request %d is out of order",
                       type, id);
    if (r->content > 0)
        return 0;
    if (type == PARAMS)
        return params_decode(r, e);
    r->complete = true;
    return 0;
}

/* Part of a record's content. */
static int on_content(struct fcgi_reader *r, const unsigned char *data, size_t len, struct err *e)
{
    switch (r->head[1]) {
    case BEGIN_REQUEST:
        memcpy(r->begin + sizeof r->begin - r->content, data, len);
        if (len == r->content && (r->begin[0] != 0 || r->begin[1] != RESPONDER))
            return err_set(e, ERR_INVALID, "FastCGI: role %d is not supported",
                           r->begin[0] << 8 | r->begin[1]);
        return 0;
    case PARAMS:
        buf_add(&r->params, data, len);
        if (buf_ok(&r->params))
            return 0;
        return err_set(e, ERR_LIMIT, "FastCGI: the parameters are over %u bytes", FCGI_PARAMS_MAX);
    default:
        buf_add(&r->body, data, len);
        r->complete = r->body.len > r->body.max - CONTENT_MAX;
        return 0;
    }
}

/* The next bytes as far as they are of one part of a record; how many, or -1. */
static long take_part(struct fcgi_reader *r, const unsigned char *data, size_t len, struct err *e)
{
    size_t n;

    if (r->n_head < sizeof r->head) {
        n = len < sizeof r->head - r->n_head ? len : sizeof r->head - r->n_head;
        memcpy(r->head + r->n_head, data, n);
        r->n_head += n;
        if (r->n_head == sizeof r->head && on_head(r, e) < 0)
            return -1;
    } else if (r->content > 0) {
        n = len < r->content ? len : r->content;
        if (on_content(r, data, n, e) < 0)
            return -1;
        r->content -= n;
    } else {
        n = len < r->padding ? len : r->padding;
        r->padding -= n;
    }
    if (r->n_head == sizeof r->head && r->content == 0 && r->padding == 0)
        r->n_head = 0;
    return (long)n;
}

int fcgi_reader_feed(struct fcgi_reader *r, const void *data, size_t len, struct err *e)
{
    const unsigned char *at = data;

    for (size_t left = len; left > 0 && !r->complete;) {
        long n = take_part(r, at, left, e);
        if (n < 0)
            return -1;
        at += n;
        left -= (size_t)n;
    }
    return r->complete;
}

const char *fcgi_reader_param(const struct fcgi_reader *r, const char *name)
{
    const char *at = buf_str(&r->params), *end = at + r->params.len;

    while (at < end) {
        const char *value = at + strlen(at) + 1;
        if (strcmp(at, name) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}
