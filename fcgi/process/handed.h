/* Listening sockets that the program which starts us has opened: systemd, spawn-fcgi. */
#pragma once

#include "common/base/err.h"

#define HANDED_FASTCGI "fastcgi"
#define HANDED_HUB     "hub"

/*
 * systemd's socket of that name (LISTEN_FDNAMES). HANDED_FASTCGI is also a single one with another
 * name, and spawn-fcgi's, which is descriptor 0. Non-blocking and CLOEXEC; the caller owns it. -1
 * with an error: it is not usable; -1 without: none was handed over.
 */
int handed_socket(const char *name, struct err *e);
