/*
 * A server with sessions in a folder of its own, one tool for each thing that a tool can do on the
 * way, a prompt, resources, and a client that writes down what it is sent and answers questions.
 * Linked by tests only.
 */
#pragma once

#include "common/mcp/server.h"
#include "tests/fakes/fake_client.h"

#include <limits.h>

struct mcp_world {
    struct mcp_server server;
    char folder[PATH_MAX];
    json_t *events; /* array of what was published, encoded */

    /* The client. */
    struct mcp_out out;
    struct mcp_origin origin;
    struct mcp_stdio_client stdio_client;
    char session[MCP_SESSION_MAX];
    json_t *sent;    /* array of what came before the answer */
    json_t *replies; /* object method → result; a method without one is not answered */
    json_t *inbox;   /* responses that wait to be read, on stdio */
    int hung_up_ms;  /* hang_up's argument; -1: not called */
    bool cancels;    /* cancels request 1 as soon as it is asked something */
};

void mcp_world_init(struct mcp_world *w);
void mcp_world_clear(struct mcp_world *w);

/* Initializes with the revision and these capabilities (JSON), and uses the session from then on.
 */
void mcp_world_start(struct mcp_world *w, const char *revision, const char *capabilities);
/* The same as a client on stdio. */
void mcp_world_start_stdio(struct mcp_world *w, const char *revision, const char *capabilities);

/* Sends a message, as text. */
struct asked mcp_world_ask(struct mcp_world *w, const char *message);
/* A request of revision 2026-07-28 with these capabilities; params is what the object holds beside
 * _meta, e.g. "\"name\":\"x\"," (ends with a comma or is empty). meta: further members of _meta,
 * each with a comma in front. */
struct asked mcp_world_modern(struct mcp_world *w, const char *method, const char *name,
                              const char *params, const char *capabilities, const char *meta);

/* The i-th message before the answer, as compact JSON (heap). */
char *mcp_world_sent(const struct mcp_world *w, size_t i);
