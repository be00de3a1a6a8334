/* The end of a conversation, as workers ask for it (see client.h). */
#ifndef SANDCGI_PROTOCOL_CLIENT_REMOVE_H
#define SANDCGI_PROTOCOL_CLIENT_REMOVE_H

#include "common/protocol/client_runs.h"

/*
 * Deletes a conversation's files, their download links and the kept results of its runs:
 * {"deleted":true,"files":N,"bytes":N}. They are out of everybody's sight when this returns.
 * ERR_BUSY: a program of it runs, or somebody uses it at this moment; ERR_NOT_FOUND: there is
 * nothing. New reference, or NULL.
 */
json_t *broker_delete_conversation(const struct broker_client *c, const char *tenant,
                                   const char *conversation, struct err *e);

#endif
