/*
 * The file of tokens, which nginx includes in a map and a worker reads. Its lines are, besides
 * blank ones and comments (#):
 *
 *   "ID" "HASH,EXPIRES TENANT SCOPES"; # MADE      a token scg_ID_SECRET of ours: its hash alone
 *   "~^(?i:bearer) +TOKEN$" "TENANT SCOPES"; # ID  one of the operator's own, as it is
 *   TENANT TOKEN                                   the same, for workers only (earlier versions)
 *
 * HASH is the base64url of MD5(ID SECRET), which nginx's secure_link compares: SECRET has 256
 * random bits, so only a preimage would help. EXPIRES is Unix time, left out with its comma for
 * never; SCOPES of an own token may be left out: all.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/crypto.h"
#include "common/base/err.h"
#include "common/tools/tools.h"

#define TOKENS_MAX       10000
#define TOKENS_FILE_MAX  (4u * 1024 * 1024)
#define TOKEN_TENANT_MAX 64
#define TOKEN_ID_MAX     12 /* of a made one 8; of an own one the first digits of its SHA-256 */
#define TOKEN_TEXT_MAX   512
#define TOKEN_OWN_MIN    16
#define TOKEN_PREFIX     "scg_"

struct token {
    char id[TOKEN_ID_MAX + 1];
    char tenant[TOKEN_TENANT_MAX + 1];
    unsigned scopes;           /* of enum scope */
    bool own;                  /* digest is SHA-256 of the text, else MD5 of id and secret */
    bool weak;                 /* an own one: short, or of few different characters */
    int64_t made_s, expires_s; /* Unix; 0: not noted, never */
    uint8_t digest[CRYPTO_SHA256_LEN]; /* of MD5 the first CRYPTO_MD5_LEN, the rest 0 */
};

/* 1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit. */
bool token_tenant_is_valid(const char *tenant);

/* The scopes of a static token's list: all where it names run, files and network, which were all
 * before there was admin. 0: the list is not valid. */
unsigned token_scopes_parse(const char *list);

/* Reads one line (NUL-terminated, without the newline). 1: a token; 0: none; -1: *e says what is
 * wrong, without the line's text. */
int token_row_parse(const char *line, struct token *out, struct err *e);

/* Appends the row of a made token, with a newline. */
void token_row_write(const struct token *token, struct buf *out);
/* The same for the operator's own token, whose text is valid (token_own_init). */
void token_own_row_write(const struct token *token, const char *text, struct buf *out);

/* Makes id, secret and digest; the whole token becomes text. Tenant, scopes and times are the
 * caller's. */
int token_make(struct token *out, char text[TOKEN_TEXT_MAX + 1], struct err *e);
/* Takes a text: 16 to 512 letters, digits or ._~+/-, with = at the end, not beginning as ours. */
int token_own_init(const char *text, struct token *out, struct err *e);

/* Shorter than 32 characters, or fewer than 8 different ones. */
bool token_text_is_weak(const char *text);

/* What a client sends: one of ours in its form, and its digest, or an own token's. false: neither.
 */
bool token_read(const char *text, struct token *out);
