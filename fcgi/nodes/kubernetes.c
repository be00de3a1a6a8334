#include "config.h"

#include "fcgi/nodes/kubernetes.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"

#include <curl/curl.h>
#include <string.h>

#define ACCOUNT    "/var/run/secrets/kubernetes.io/serviceaccount"
#define ANSWER_MAX (16u * 1024 * 1024)
#define ANSWER_MS  5000L
#define TOKEN_MAX  (16u * 1024)
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-."

static bool is_name(const char *text)
{
    const size_t n = strspn(text, NAME_CHARS);

    return n > 0 && n <= NODE_FULL_CHARS && text[n] == '\0';
}

int kubernetes_check(const struct nodes_place *place, struct err *e)
{
    if (!place->service || !is_name(place->service))
        return err_set(e, ERR_INVALID, "--from kubernetes needs --service, a service's name");
    if (place->name_space && !is_name(place->name_space))
        return err_set(e, ERR_INVALID, "--namespace must be a namespace's name");
    return 0;
}

/* ---- what the answer says ---- */

/* 0: none. */
static unsigned port_of(const json_t *slice)
{
    const json_t *port;
    unsigned first = 0;
    size_t i;

    json_array_foreach(json_object_get(slice, "ports"), i, port)
    {
        const char *name = json_get_string(port, "name");
        json_int_t number = json_get_integer(port, "port", 0);
        if (number < 1 || number > 65535)
            continue;
        if (name && strcmp(name, "http") == 0)
            return (unsigned)number;
        first = first ? first : (unsigned)number;
    }
    return first;
}

static int add_endpoint(const json_t *endpoint, bool ipv6, unsigned port, struct nodes *out,
                        struct err *e)
{
    const json_t *addresses = json_object_get(endpoint, "addresses");
    const char *address = json_string_value(json_array_get(addresses, 0));
    const char *machine = json_get_string(endpoint, "nodeName");
    /* Absent means ready (EndpointConditions). */
    const bool ready = json_get_bool(json_object_get(endpoint, "conditions"), "ready", 1);
    char name[NODE_NAME_MAX + 1];

    if (!machine)
        return 0; /* it is on no machine yet */
    if (!address)
        return err_set(e, ERR_PROTOCOL, "machine %.64s: an endpoint without an address", machine);
    if (node_name_make(machine, name, e) < 0)
        return -1;
    AUTO_FREE char *host = mem_printf(ipv6 ? "[%s]" : "%s", address);
    const struct node_row *other = nodes_find(out, name);
    if (other && (other->state == NODE_READY || !ready))
        return 0;
    if (other)
        nodes_drop(out, name);
    if (nodes_add(out, name, host, port, ready ? NODE_READY : NODE_ABSENT, e) < 0)
        return err_wrap(e, "machine %.64s", machine);
    return 0;
}

static int add_slice(const json_t *slice, const struct nodes_place *place, struct nodes *out,
                     struct err *e)
{
    const json_t *endpoints = json_object_get(slice, "endpoints"), *endpoint;
    const char *type = json_get_string(slice, "addressType");
    const unsigned port = place->port ? place->port : port_of(slice);
    size_t i;

    if (json_array_size(endpoints) > 0 && port == 0)
        return err_set(e, ERR_NOT_FOUND,
                       "the service %s has no port: give it one, or name it with --port",
                       place->service);
    json_array_foreach(endpoints, i, endpoint)
    {
        bool ipv6 = type && strcmp(type, "IPv6") == 0;
        if (add_endpoint(endpoint, ipv6, port, out, e) < 0)
            return -1;
    }
    return 0;
}

int kubernetes_read(const json_t *list, const struct nodes_place *place, struct nodes *out,
                    struct err *e)
{
    const json_t *items = json_object_get(list, "items"), *slice;
    const char *more = json_get_string(json_object_get(list, "metadata"), "continue");
    size_t i;

    if (!json_is_array(items))
        return err_set(e, ERR_PROTOCOL, "the API server's answer is not a list of EndpointSlices");
    if (more && *more)
        return err_set(e, ERR_LIMIT, "the API server has more EndpointSlices than one answer");
    json_array_foreach(items, i, slice) if (add_slice(slice, place, out, e) < 0) return -1;
    return 0;
}

/* ---- asking ---- */

static int read_account(const char *name, struct buf *out, struct err *e)
{
    AUTO_FREE char *path = mem_printf("%s/%s", ACCOUNT, name);

    if (fdio_read_file(path, out, e) < 0)
        return err_wrap(e, "the pod's service account");
    while (out->len > 0 && strchr("\r\n ", out->data[out->len - 1]))
        out->data[--out->len] = '\0';
    return 0;
}

static size_t take_body(char *data, size_t one, size_t len, void *ctx)
{
    struct buf *out = ctx;

    (void)one;
    buf_add(out, data, len);
    return buf_ok(out) ? len : 0;
}

static void set_options(CURL *c, const char *url, struct curl_slist *headers, struct buf *out)
{
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_CAINFO, ACCOUNT "/ca.crt");
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_PROXY, "");
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, ANSWER_MS);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, out);
}

/* GET with the token; what is not 200 is an error. */
static int get(const char *url, const char *token, struct buf *out, struct err *e)
{
    AUTO_FREE char *header = mem_printf("Authorization: Bearer %s", token);
    struct curl_slist *headers = curl_slist_append(NULL, header);
    CURL *c = curl_easy_init();
    CURLcode code = CURLE_FAILED_INIT;
    long status = 0;

    if (c && headers) {
        set_options(c, url, headers, out);
        code = curl_easy_perform(c);
        curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    }
    curl_easy_cleanup(c);
    curl_slist_free_all(headers);
    if (code != CURLE_OK)
        return err_set(e, ERR_UNAVAILABLE, "the API server: %s", curl_easy_strerror(code));
    if (status == 403)
        return err_set(e, ERR_DENIED,
                       "the API server: the pod's account may not list endpointslices (403)");
    return status == 200 ? 0 : err_set(e, ERR_UNAVAILABLE, "the API server answered %ld", status);
}

int kubernetes_look(const struct nodes_place *place, struct nodes *out, struct err *e)
{
    AUTO_BUF struct buf token = BUF_INIT(TOKEN_MAX), own = BUF_INIT(NODE_FULL_CHARS + 2);
    AUTO_BUF struct buf answer = BUF_INIT(ANSWER_MAX);
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");

    if (!host || !port)
        return err_set(e, ERR_UNAVAILABLE, "KUBERNETES_SERVICE_HOST is not set: this is no pod");
    if (read_account("token", &token, e) < 0 ||
        (!place->name_space && read_account("namespace", &own, e) < 0))
        return -1;
    AUTO_FREE char *url = mem_printf(
        "https://%s%s%s:%s/apis/discovery.k8s.io/v1/namespaces/%s/"
        "endpointslices?labelSelector=kubernetes.io%%2F"
        "service-name%%3D%s",
        strchr(host, ':') ? "[" : "", host, strchr(host, ':') ? "]" : "", port,
        place->name_space ? place->name_space : buf_str(&own), place->service);
    if (get(url, buf_str(&token), &answer, e) < 0)
        return -1;
    json_auto_t *list = json_parse(buf_str(&answer), answer.len, JSON_MAX_DEPTH, e);
    return list ? kubernetes_read(list, place, out, e) : err_wrap(e, "the API server's answer");
}
