/* Limits of calls and runs, from the settings: the broker holds them, the tools describe them. */
#pragma once

#include "common/base/network.h"

#include <stdbool.h>
#include <stdint.h>

/* Persistent sandboxes. */
struct psandbox_settings {
    uint64_t tenant_max, server_max; /* at the same time */
    uint64_t idle_ms;                /* unused for so long one is closed, */
    uint64_t pause_ms;               /* and paused; 0: never */
    uint64_t total_ms;               /* whatever it does, it ends then */
    const char *images;              /* besides runners: repositories, as allow_images; "": none */
};

/* What one run may use, for words about it. 0: not known here. */
struct run_bounds {
    uint64_t memory, tmp, file; /* bytes; file: of one that it writes */
    uint64_t cpu_milli, pids;
};

struct broker_limits {
    uint64_t timeout_ms;    /* default of a run */
    bool timeout_automatic; /* the operator has set none */
    uint64_t timeout_max_ms;
    uint64_t code_max; /* bytes, as are the next */
    uint64_t stdin_max;
    uint64_t file_max;   /* decoded */
    uint64_t upload_max; /* of what does not pass through a message: uploads by ticket, imports */
    uint64_t upload_ttl_ms; /* of an upload link */
    uint64_t env_max;       /* all names and values together */
    uint64_t output_keep;   /* of each stream */
    uint64_t answer_max;    /* of what a result in text holds of output, a file, a list */
    uint64_t output_max;    /* of both together; 0: no limit */
    uint64_t max_runs;      /* at the same time, as are the next two */
    uint64_t tenant_runs;
    uint64_t conversation_runs;
    uint64_t queue;          /* runs that wait for a place; more are busy */
    uint64_t background_max; /* of one tenant: runs without a waiting caller */
    uint64_t wait_ms;        /* default of a call; 0: to the program's end */
    uint64_t wait_max_ms;
    uint64_t result_ttl_ms;    /* of a kept run, from its end on */
    uint64_t image_max;        /* bytes of one inline picture */
    uint64_t images_max;       /* of one result */
    enum network_tier network; /* the most that a run may have */
    bool network_ask;          /* with the user's consent, each time */
    bool import;               /* may URLs be fetched? */
    struct run_bounds run;
    struct psandbox_settings persistent;
};
