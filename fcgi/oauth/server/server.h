/*
 * The authorization server for one operator (SANDCGI_OAUTH=builtin): a process beside the workers,
 * which knows no conversation, no broker and no engine, and opens no file but those of its folder
 * (store.h). It answers one request at a time; there are OAUTH_PROCESSES of them, so that one that
 * waits for a document does not stop all.
 */
#pragma once

#include "fcgi/process/resources.h"

#define OAUTH_PROCESSES 2

/* The process: serves listen_fd (FastCGI) until SIGTERM. folder_fd: store_folder_open. Returns 0,
 * or -1 when it cannot start or the socket is unusable. */
int oauth_main(const struct settings *s, const struct account *workers, int listen_fd,
               int folder_fd, struct err *e);
