/* How persistent sandboxes are told to a client: the rows of create_sandbox, get_sandbox_status,
 * close_sandbox and reset_session. */
#ifndef SANDCGI_TOOLS_SANDBOXES_SANDBOX_ROWS_H
#define SANDCGI_TOOLS_SANDBOXES_SANDBOX_ROWS_H

#define SANDBOX_ID_HELP "The sandbox's sandboxId, as create_sandbox told it."

/* JSON schema of one. */
#define SANDBOX_ROW_SCHEMA                                                                         \
    "{\"type\":\"object\",\"required\":[\"sandboxId\",\"status\",\"conversationId\"],"             \
    "\"properties\":{"                                                                             \
    "\"sandboxId\":{\"type\":\"string\"},"                                                         \
    "\"status\":{\"type\":\"string\",\"enum\":[\"running\",\"paused\",\"closed\",\"expired\","     \
    "\"lost\"],\"description\":\"paused: the next call wakes it; lost: its container ended from "  \
    "outside\"},"                                                                                  \
    "\"conversationId\":{\"type\":\"string\"},"                                                    \
    "\"language\":{\"type\":\"string\"},"                                                          \
    "\"image\":{\"type\":\"string\"},"                                                             \
    "\"network\":{\"type\":\"boolean\"},"                                                          \
    "\"session\":{\"type\":\"boolean\",\"description\":\"it keeps the variables of run_code with " \
    "session\"},"                                                                                  \
    "\"createdAt\":{\"type\":\"integer\",\"description\":\"Unix time, as are the others\"},"       \
    "\"lastUsedAt\":{\"type\":\"integer\"},"                                                       \
    "\"idleSeconds\":{\"type\":\"integer\",\"description\":\"unused for so long, it expires\"},"   \
    "\"expiresAt\":{\"type\":\"integer\",\"description\":\"at the latest\"},"                      \
    "\"endedAt\":{\"type\":\"integer\"},"                                                          \
    "\"reason\":{\"type\":\"string\",\"description\":\"why it ended\"}}}"

#endif
