#include "config.h"

#include "fcgi/http/http_request.h"

#include "common/base/auto.h"

#include <string.h>

#define PARAM_PREFIX   "HTTP_MCP_PARAM_"
#define PARAM_NAME_MAX 128

static const struct {
    const char *name;
    size_t offset;
} params[] = {
    {"REQUEST_METHOD", offsetof(struct http_request, method)},
    {"REQUEST_URI", offsetof(struct http_request, uri)},
    {"CONTENT_TYPE", offsetof(struct http_request, content_type)},
    {"CONTENT_LENGTH", offsetof(struct http_request, content_length)},
    {"HTTP_HOST", offsetof(struct http_request, host)},
    {"HTTP_ORIGIN", offsetof(struct http_request, origin)},
    {"HTTP_ACCEPT", offsetof(struct http_request, accept)},
    {"HTTP_AUTHORIZATION", offsetof(struct http_request, authorization)},
    {"HTTP_MCP_PROTOCOL_VERSION", offsetof(struct http_request, mcp_version)},
    {"HTTP_MCP_METHOD", offsetof(struct http_request, mcp_method)},
    {"HTTP_MCP_NAME", offsetof(struct http_request, mcp_name)},
    {"HTTP_MCP_SESSION_ID", offsetof(struct http_request, mcp_session)},
    {"HTTP_LAST_EVENT_ID", offsetof(struct http_request, last_event_id)},
    {"HTTP_ACCESS_CONTROL_REQUEST_HEADERS", offsetof(struct http_request, asked_headers)},
    {"SANDCGI_TENANT", offsetof(struct http_request, tenant)},
    {"SANDCGI_SECRET", offsetof(struct http_request, secret)},
    {"SANDCGI_TOOLS", offsetof(struct http_request, tools)},
    {"SANDCGI_CHECK", offsetof(struct http_request, check)},
    {"SANDCGI_PATH", offsetof(struct http_request, path)},
    {"SANDCGI_BODY_FILE", offsetof(struct http_request, body_file)},
};

void http_request_read(const struct http_source *source, struct http_request *out)
{
    *out = (struct http_request){.source = source};
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        const char *value = source->param(source->ctx, params[i].name);
        if (value && *value)
            *(const char **)((char *)out + params[i].offset) = value;
    }
}

/* As a web server makes a parameter's name of a header's; 0 when the name is not plain ASCII. */
static char param_char(char c)
{
    if (c >= 'a' && c <= 'z')
        return (char)(c - 'a' + 'A');
    if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return c;
    return c == '-' ? '_' : '\0';
}

const char *http_request_param_header(void *ctx, const char *name)
{
    const struct http_request *r = ctx;
    char full[sizeof PARAM_PREFIX + PARAM_NAME_MAX] = PARAM_PREFIX;
    size_t at = sizeof PARAM_PREFIX - 1;

    for (; *name; name++, at++) {
        if (at + 1 >= sizeof full || !param_char(*name))
            return NULL;
        full[at] = param_char(*name);
    }
    full[at] = '\0';
    return r->source->param(r->source->ctx, full);
}

struct mcp_origin http_request_origin(struct http_request *r)
{
    return (struct mcp_origin){.http = true,
                               .tenant = r->tenant,
                               .protocol_version = r->mcp_version,
                               .method = r->mcp_method,
                               .name = r->mcp_name,
                               .session = r->mcp_session,
                               .accept = r->accept,
                               .param_header = http_request_param_header,
                               .param_ctx = r,
                               .cancel_fd = r->source->cancel_fd};
}

bool http_request_is(const struct http_request *r, const char *method)
{
    return r->method && strcmp(r->method, method) == 0;
}
