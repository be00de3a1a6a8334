#include "config.h"

#include "common/tools/files/changes.h"

#include "common/base/auto.h"
#include "common/mcp/events/event.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/tools/files/uri.h"

static void publish_resource(const struct changes *c, const char *name)
{
    AUTO_FREE char *uri = uri_of_file(c->conversation, name);
    const struct mcp_event event = {.kind = MCP_EVENT_RESOURCE, .tenant = c->tenant, .uri = uri};

    /* Clients listen for URIs in our spelling only. */
    if (uri_is_ours(uri))
        mcp_publish(c->server, &event);
}

void changes_publish_list(const struct changes *c)
{
    const struct mcp_event event = {.kind = MCP_EVENT_RESOURCES, .tenant = c->tenant};

    mcp_publish(c->server, &event);
}

void changes_publish(const struct changes *c, const json_t *files)
{
    size_t i;
    json_t *file;

    json_array_foreach(files, i, file)
    {
        const char *name = json_get_string(file, "name");

        if (name)
            publish_resource(c, name);
    }
    if (json_array_size(files) > 0)
        changes_publish_list(c);
}

void changes_publish_file(const struct changes *c, const char *name)
{
    publish_resource(c, name);
    changes_publish_list(c);
}

json_t *changes_in_folder(const struct changes *c, const struct broker_client *client,
                          const char *folder)
{
    const struct broker_listing listing = {.conversation = c->conversation,
                                           .folder = folder,
                                           .recursive = true,
                                           .max = CHANGES_FOLDER_MAX};
    struct err e = ERR_INIT;
    json_auto_t *page = broker_list_folder(client, c->tenant, &listing, &e);
    json_t *files = json_array();
    size_t i;
    json_t *row;

    json_array_foreach(json_object_get(page, "files"), i, row)
    {
        if (json_object_get(row, "url"))
            json_array_append(files, row);
    }
    return files;
}
