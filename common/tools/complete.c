#include "config.h"

#include "common/tools/complete.h"

#include "common/protocol/client_files.h"
#include "common/tools/broker_access.h"

#include <string.h>

json_t *complete_language(const struct tools_app *app, const char *value)
{
    json_auto_t *languages = runners_languages(app, NULL);
    json_t *found = json_array();
    size_t i;
    json_t *language;

    json_array_foreach(languages, i, language)
    {
        if (json_array_size(found) < COMPLETE_MAX &&
            strncmp(json_string_value(language), value, strlen(value)) == 0)
            json_array_append(found, language);
    }
    return found;
}

json_t *complete_conversation(const struct tools_app *app, const char *tenant, const char *value)
{
    struct broker_client client = tools_client(app, -1);
    struct err e = ERR_INIT;

    return broker_names(&client, tenant, NULL, value, COMPLETE_MAX, &e);
}

json_t *complete_file(const struct tools_app *app, const char *tenant, const char *conversation,
                      const char *value)
{
    struct broker_client client = tools_client(app, -1);
    struct err e = ERR_INIT;

    return conversation ? broker_names(&client, tenant, conversation, value, COMPLETE_MAX, &e)
                        : NULL;
}
