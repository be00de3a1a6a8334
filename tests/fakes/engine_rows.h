/* Rows of a fake engine's table (fake_engine.h) for one container of run "r1", and what containers
 * send. */
#pragma once

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Of that container, as struct engine_spec. */
#define SPEC                                                                                       \
    {                                                                                              \
        .image = "runner-x:1", .protocol = 2, .data_path = "/srv/x", .user = "1000:1000",          \
        .instance = "t", .run_id = "r1", .deadline_unix = 1, .helpers_path = "/srv/.helpers/1"     \
    }

#define PING                                                                                       \
    {                                                                                              \
        .match = "GET /_ping", .status = 200, .body = "OK"                                         \
    }
#define CREATED                                                                                    \
    {                                                                                              \
        .match = "POST /v1.41/containers/create", .status = 201,                                   \
        .body = "{\"Id\":\"" ID "\",\"Warnings\":[]}"                                              \
    }
#define START "POST /v1.41/containers/" ID "/start"
#define STARTED                                                                                    \
    {                                                                                              \
        .match = START, .status = 204                                                              \
    }
#define ATTACH "POST /v1.41/containers/" ID "/attach?stream=1&stdin=1&stdout=1&stderr=1"
#define WAITED                                                                                     \
    {                                                                                              \
        .match = "POST /v1.41/containers/" ID "/wait", .status = 200, .body = "{\"StatusCode\":0}" \
    }
#define REMOVE "DELETE /v1.41/containers/sandcgi-r1?force=1&v=1"
#define REMOVED                                                                                    \
    {                                                                                              \
        .match = REMOVE, .status = 204                                                             \
    }
#define END                                                                                        \
    {                                                                                              \
        .match = NULL                                                                              \
    }

/* The bytes of a string literal and how many they are. */
#define BYTES(text) (text), sizeof(text) - 1

/* Engine frames whose payload is the entry protocol's: how far it is; of the first command that it
 * starts, stdout "hi", stderr "no", the report. */
#define REPORT                                                                                     \
    "{\"exitCode\":7,\"signal\":0,\"cpuUs\":5,\"peakMemoryBytes\":6,\"oomKills\":0,\"timedOut\":"  \
    "false}"
#define STREAM_STARTED   "\1\0\0\0\0\0\0\20W\0\0\0\13\0\0\0\0started"
#define STREAM_PRELOADED "\1\0\0\0\0\0\0\22W\0\0\0\15\0\0\0\0preloaded"
#define STREAM_WARM      "\1\0\0\0\0\0\0\15S\0\0\0\10\0\0\0\1warm"
#define STREAM_OUT       "\1\0\0\0\0\0\0\13O\0\0\0\6\0\0\0\1hi"
#define STREAM_ERR       "\1\0\0\0\0\0\0\13E\0\0\0\6\0\0\0\1no"
#define STREAM_REPORT    "\1\0\0\0\0\0\0\x5eR\0\0\0\x59\0\0\0\1" REPORT
