/*
 * A broker in the test's own process: the functions of common/protocol/client_runs.h, answering
 * what the test laid down and remembering what they were asked. Linked by tests only.
 */
#pragma once

#include "common/protocol/client_files.h"
#include "common/protocol/client_runs.h"

struct fake_broker {
    /* What it answers. */
    json_t *runners;     /* NULL: trouble */
    json_t *run_results; /* array, one taken per run from the front; empty: trouble */
    json_t *files;       /* name to base64 */
    json_t *pages;       /* array of what broker_list_files answers, one taken per question; empty:
                            trouble */
    json_t *names;       /* what broker_names answers; NULL: trouble */
    int ticks;           /* how often a run calls its caller's tick */
    size_t opened;       /* how many of a run's files come opened, where they are asked for so */
    struct err trouble;  /* of runs, uploads, runners, lists and names */
    json_t *looks;       /* what broker_get_run and broker_cancel_run answer, as run_results */
    json_t *live;    /* array of {stdout|stderr|skipped, nextByte}: what every run and look tells
                        its callbacks first; NULL: nothing */
    uint64_t queued; /* the position that is told before; 0: none */
    struct broker_busy busy; /* comes with every trouble */
    json_t *file_answers; /* array, what broker_list_folder, broker_delete_file and broker_move_file
                             answer, one each; empty: trouble */
    json_t *run_list;     /* what broker_list_runs answers; NULL: trouble */
    json_t *archive;      /* what broker_archive_link and broker_unpack answer; NULL: trouble */
    /* What it was asked. */
    json_t *runs;  /* array of the requests as objects, with waitMs, background, detach, wants */
    json_t *asked; /* array of {op, tenant, runId, sinceByte, waitMs} and {op, tenant, conversation}
                      of get_run, cancel_run and list_runs; {op, tenant, conversation, folder,
                      format | archive, size, replace} of archive_link and unpack */
    json_t *puts;  /* array of {tenant, conversation, name, replace, content} */
    json_t
        *file_asks; /* array of {op, …} of those three, and of uploads by link and fetched URLs */
    json_t *lists;  /* array of {tenant, after, max} and {tenant, conversation, prefix, max} */
    unsigned opens;
    unsigned runner_questions;
};

extern struct fake_broker fake_broker;

/* As new: no runners, no files, everything unavailable. */
void fake_broker_reset(void);

/* JSON texts; NULL: a file answer that there is none. */
void fake_broker_set_runners(const char *text);
void fake_broker_push_result(const char *text);
void fake_broker_push_page(const char *text);
void fake_broker_push_file_answer(const char *text);
void fake_broker_set_names(const char *text);
void fake_broker_set_archive(const char *text);

void fake_broker_add_file(const char *name, const void *data, size_t len);

/* The result of a run that printed stdout_text and left files (a JSON array as text), exit code 0.
 */
void fake_broker_push_ok(const char *stdout_text, const char *files);
