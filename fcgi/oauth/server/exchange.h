/* One request to the authorization server, and its answer. */
#pragma once

#include "common/base/buf.h"
#include "fcgi/http/http_request.h"
#include "fcgi/oauth/server/form.h"
#include "fcgi/oauth/server/signing_key.h"
#include "fcgi/oauth/server/store.h"

/* What the server's process holds. */
struct oauth {
    const struct settings *settings; /* borrowed */
    const char *issuer;              /* PUBLIC_BASE_URL, borrowed */
    char *front_secret;              /* that nginx must send; NULL with SANDCGI_AUTH=token */
    int folder_fd;                   /* store.h; borrowed */
    int fetch_fd;                    /* documents.h */
    struct signing_key *key;
    uint8_t secret[STORE_SECRET_LEN];
};

#define EXCHANGE_BODY_MAX 32768
#define EXCHANGE_MAX      (128u * 1024)

struct exchange {
    struct http_request request;
    const char *query;
    struct buf body; /* of the request */
    /* the answer */
    int status;
    const char *type; /* of its text; NULL: there is none */
    struct buf headers, text;
};

/* An answer that no other page may read, and that nobody keeps. */
void exchange_answer(struct exchange *x, int status, const char *type);
/* A JSON object. take_body is freed. */
void exchange_json(struct exchange *x, int status, json_t *take_body);
/* The error of RFC 6749 (5.2): {"error", "error_description"}. */
void exchange_error(struct exchange *x, int status, const char *code, const char *description);
/* A failure of ours, which is logged; the client is told that there was one. */
void exchange_fail(struct exchange *x, const struct err *e);

/* Parses the body as a form; -1: the answer says what is wrong. */
int exchange_form(struct exchange *x, struct form *out);
/* The value of a field that must be there; NULL: the answer says that it is not. */
const char *exchange_need(struct exchange *x, const struct form *f, const char *name);

/* Who asks, for the log; "" unknown. */
const char *exchange_address(const struct exchange *x);

/* ---- the endpoints; each fills the answer ---- */

/* GET shows the page, POST is its answer (authorize.c). */
void authorize_serve(const struct oauth *o, struct exchange *x);
/* POST: a code or a refresh token for tokens (tokens.c). */
void token_serve(const struct oauth *o, struct exchange *x);
/* POST: a token's grant ends (RFC 7009). */
void revoke_serve(const struct oauth *o, struct exchange *x);
/* POST: a client registers (RFC 7591). */
void register_serve(const struct oauth *o, struct exchange *x);
