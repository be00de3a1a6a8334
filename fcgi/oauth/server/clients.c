#include "config.h"

#include "fcgi/oauth/server/clients.h"

#include "common/base/auto.h"
#include "common/base/b64.h"
#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/base/utf8.h"
#include "common/rpc/json.h"
#include "fcgi/oauth/server/documents.h"
#include "fcgi/oauth/server/uri.h"

#include <string.h>

#define LABEL          "sandcgi client 1"
#define ID_PREFIX      "scc_"
#define DOCUMENT_S     3600 /* a document is kept for so long */
#define PROBLEM_S      60   /* and that there was none */
#define METADATA_DEPTH 8

void client_clear(struct client *c)
{
    free(c->id);
    free(c->name);
    json_decref(c->redirects);
    *c = (struct client){0};
}

/* ---- metadata ---- */

static json_t *read_redirects(const json_t *list, struct err *e)
{
    json_auto_t *out = json_array();
    size_t i, len = 0;
    json_t *item;

    if (!json_is_array(list) || json_array_size(list) == 0 ||
        json_array_size(list) > CLIENT_REDIRECTS_MAX) {
        err_set(e, ERR_INVALID, "redirect_uris must be an array of 1 to %d URIs",
                CLIENT_REDIRECTS_MAX);
        return NULL;
    }
    json_array_foreach(list, i, item)
    {
        const char *uri = json_string_value(item);
        if (!uri || strlen(uri) != json_string_length(item)) {
            err_set(e, ERR_INVALID, "redirect_uris must be strings");
            return NULL;
        }
        len += strlen(uri);
        if (redirect_check(uri, e) < 0)
            return NULL;
        json_array_append_new(out, json_string(uri));
    }
    if (len > CLIENT_REDIRECTS_LEN) {
        err_set(e, ERR_LIMIT, "redirect_uris are longer than %d bytes together",
                CLIENT_REDIRECTS_LEN);
        return NULL;
    }
    return TAKE_PTR(out);
}

static bool is_line(const char *text)
{
    for (const char *s = text; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return false;
    return true;
}

json_t *client_read_metadata(const json_t *metadata, const char **out_code, struct err *e)
{
    const json_t *name = json_object_get(metadata, "client_name");
    const char *text = json_get_string(metadata, "client_name");

    *out_code = "invalid_client_metadata";
    if (!json_is_object(metadata)) {
        err_set(e, ERR_INVALID, "the metadata must be a JSON object");
        return NULL;
    }
    if (name && (!text || strlen(text) > CLIENT_NAME_MAX || !is_line(text))) {
        err_set(e, ERR_INVALID, "client_name must be a line of at most %d bytes", CLIENT_NAME_MAX);
        return NULL;
    }
    *out_code = "invalid_redirect_uri";
    json_auto_t *redirects = read_redirects(json_object_get(metadata, "redirect_uris"), e);
    if (!redirects)
        return NULL;
    AUTO_FREE char *host = uri_host(json_string_value(json_array_get(redirects, 0)));
    return json_pack("{s:s, s:O}", "name", text && *text ? text : host, "redirects", redirects);
}

json_t *client_read_document(const char *url, const char *text, size_t len, struct err *e)
{
    json_auto_t *document = json_parse(text, len, METADATA_DEPTH, e);
    const char *id = json_get_string(document, "client_id"), *code;

    if (!document)
        return NULL;
    if (!id || strcmp(id, url) != 0) {
        err_set(e, ERR_INVALID, "its client_id is not its address");
        return NULL;
    }
    return client_read_metadata(document, &code, e);
}

/* ---- registration ---- */

/* What shows that we have made an id of this payload. */
static int make_mac(const uint8_t secret[STORE_SECRET_LEN], const char *payload,
                    char out[CRYPTO_HEX_LEN(CRYPTO_SHA256_LEN)], struct err *e)
{
    const struct crypto_part parts[] = {{LABEL, strlen(LABEL)}, {payload, strlen(payload)}};
    uint8_t mac[CRYPTO_SHA256_LEN];

    if (crypto_hmac(secret, STORE_SECRET_LEN, parts, ARRAY_LEN(parts), mac, e) < 0)
        return -1;
    crypto_hex(mac, sizeof mac, out);
    return 0;
}

/* ID_PREFIX PAYLOAD "." MAC, where PAYLOAD is JSON: a random number, the name, the URIs. */
static int make_id(const uint8_t secret[STORE_SECRET_LEN], const json_t *client, struct buf *out,
                   struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(CLIENT_ID_MAX), payload = BUF_INIT(CLIENT_ID_MAX);
    char mac[CRYPTO_HEX_LEN(CRYPTO_SHA256_LEN)];
    json_auto_t *all = json_pack("[I, O, O]", (json_int_t)crypto_random_u32(),
                                 json_object_get(client, "name"),
                                 json_object_get(client, "redirects"));

    json_write(all, &text);
    b64url_encode(buf_str(&text), text.len, &payload);
    if (make_mac(secret, buf_str(&payload), mac, e) < 0)
        return -1;
    buf_addf(out, ID_PREFIX "%s.%s", buf_str(&payload), mac);
    return buf_ok(out) ? 0 : err_set(e, ERR_LIMIT, "the client's metadata is too long");
}

/* The metadata that an id of ours holds; NULL: it is none. */
static json_t *read_id(const uint8_t secret[STORE_SECRET_LEN], const char *id)
{
    AUTO_BUF struct buf text = BUF_INIT(CLIENT_ID_MAX);
    const char *start = id + strlen(ID_PREFIX), *dot = strchr(id, '.');
    char mac[CRYPTO_HEX_LEN(CRYPTO_SHA256_LEN)];
    json_t *name, *redirects;
    struct err e = ERR_INIT;
    json_int_t number;

    if (!dot || strncmp(id, ID_PREFIX, strlen(ID_PREFIX)) != 0)
        return NULL;
    AUTO_FREE char *payload = mem_strndup(start, (size_t)(dot - start));
    if (make_mac(secret, payload, mac, &e) < 0 ||
        !crypto_equal(mac, strlen(mac), dot + 1, strlen(dot + 1)) ||
        b64url_decode(payload, strlen(payload), &text) < 0)
        return NULL;
    json_auto_t *all = json_parse(buf_str(&text), text.len, METADATA_DEPTH, &e);
    if (json_unpack(all, "[I, o, o]", &number, &name, &redirects) < 0)
        return NULL;
    return json_pack("{s:O, s:O}", "name", name, "redirects", redirects);
}

json_t *client_register(const uint8_t secret[STORE_SECRET_LEN], const json_t *metadata, int64_t now,
                        const char **out_code, struct err *e)
{
    AUTO_BUF struct buf id = BUF_INIT(CLIENT_ID_MAX);
    json_auto_t *client = client_read_metadata(metadata, out_code, e);

    if (!client)
        return NULL;
    *out_code = NULL;
    if (make_id(secret, client, &id, e) < 0)
        return NULL;
    return json_pack(
        "{s:s, s:I, s:O, s:O, s:s, s:[s,s], s:[s]}", "client_id", buf_str(&id),
        "client_id_issued_at", (json_int_t)now, "client_name", json_object_get(client, "name"),
        "redirect_uris", json_object_get(client, "redirects"), "token_endpoint_auth_method", "none",
        "grant_types", "authorization_code", "refresh_token", "response_types", "code");
}

/* ---- finding ---- */

static int64_t time_of(const json_t *client, const char *name)
{
    return json_get_integer(client, name, 0);
}

/* The client gets a reference to the list of its URIs, since the state is freed. */
static void client_set(struct client *out, const char *id, const json_t *known, bool published)
{
    const char *name = json_get_string(known, "name");

    *out = (struct client){.id = mem_strdup(id),
                           .name = mem_strdup(name ? name : ""),
                           .redirects = json_incref(json_object_get(known, "redirects")),
                           .published = published};
}

/* A registered client: by its id, or of an earlier version's list. */
static int find_registered(int folder_fd, const uint8_t secret[STORE_SECRET_LEN], const char *id,
                           struct client *out, struct err *e)
{
    AUTO_STORE struct store s = STORE_INIT;
    json_auto_t *sealed = read_id(secret, id);
    const json_t *known = sealed;

    if (!known && store_begin(folder_fd, &s, e) < 0)
        return -1;
    if (!known)
        known = json_object_get(json_object_get(s.state, "clients"), id);
    if (!known)
        return err_set(e, ERR_NOT_FOUND,
                       "this client is not registered here (any more); it must register again");
    client_set(out, id, known, false);
    return 0;
}

/* 1: it is known; 0: the document must be fetched; -1: it cannot be used. */
static int look_up(int folder_fd, const char *url, struct client *out, struct err *e)
{
    AUTO_STORE struct store s = STORE_INIT;

    if (store_begin(folder_fd, &s, e) < 0)
        return -1;
    const json_t *known = json_object_get(json_object_get(s.state, "documents"), url);
    const char *problem = json_get_string(known, "problem");
    int64_t age = clock_unix_s() - time_of(known, "made");
    if (!known || age < 0 || age > (problem ? PROBLEM_S : DOCUMENT_S))
        return 0;
    if (problem)
        return err_set(e, ERR_INVALID, "%s", problem);
    client_set(out, url, known, true);
    return 1;
}

/* take_known: the document, or its problem. */
static int remember(int folder_fd, const char *url, json_t *take_known, struct err *e)
{
    AUTO_STORE struct store s = STORE_INIT;
    const char *id, *oldest = url;
    json_t *documents, *one;

    json_object_set_new(take_known, "made", json_integer(clock_unix_s()));
    if (store_begin(folder_fd, &s, e) < 0) {
        json_decref(take_known);
        return -1;
    }
    documents = json_object_get(s.state, "documents");
    json_object_set_new(documents, url, take_known);
    json_object_foreach(documents, id, one) if (time_of(one, "made") <
                                                time_of(json_object_get(documents, oldest), "made"))
        oldest = id;
    if (json_object_size(documents) > CLIENT_DOCUMENTS_MAX)
        json_object_del(documents, oldest);
    return store_save(&s, e);
}

static int fetch_client(int folder_fd, int fetch_fd, const char *url, struct client *out,
                        struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(DOCUMENT_MAX);
    AUTO_FD int lock = store_lock_fetch(folder_fd, e);
    struct err why = ERR_INIT;
    json_t *known = NULL;

    if (lock < 0)
        return e->kind == ERR_BUSY ? err_set(e, ERR_BUSY,
                                             "the document of another client is being fetched; try "
                                             "again in some seconds")
                                   : -1;
    if (document_fetch(fetch_fd, url, &text, &why) == 0)
        known = client_read_document(url, buf_str(&text), text.len, &why);
    if (known) {
        client_set(out, url, known, true);
        return remember(folder_fd, url, known, e);
    }
    err_wrap(&why, "the document of this client cannot be used");
    if (remember(folder_fd, url, json_pack("{s:s}", "problem", why.text), e) < 0)
        return -1;
    return err_set(e, ERR_INVALID, "%s", why.text);
}

int client_find(int folder_fd, int fetch_fd, const uint8_t secret[STORE_SECRET_LEN], const char *id,
                struct client *out, struct err *e)
{
    bool is_url = strncmp(id, "https://", 8) == 0;
    int rc;

    *out = (struct client){0};
    if (strlen(id) > CLIENT_ID_MAX || (is_url && !client_url_is_valid(id)))
        return err_set(e, ERR_INVALID,
                       "client_id is neither one that was registered here nor the https address of "
                       "a document");
    if (!is_url)
        rc = find_registered(folder_fd, secret, id, out, e);
    else if ((rc = look_up(folder_fd, id, out, e)) == 0)
        rc = fetch_client(folder_fd, fetch_fd, id, out, e);
    if (rc < 0)
        client_clear(out);
    return rc < 0 ? -1 : 0;
}

bool client_has_redirect(const struct client *c, const char *uri)
{
    json_t *item;
    size_t i;

    json_array_foreach(c->redirects, i,
                       item) if (redirect_matches(json_string_value(item), uri)) return true;
    return false;
}
