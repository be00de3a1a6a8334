/*
 * Fetching documents of the web for the authorization server, which has no network: a process
 * beside it, with the workers' account and no secrets, has common/fetch do it, in a process of its
 * own again, behind the address guard.
 */
#pragma once

#include "common/base/buf.h"
#include "fcgi/process/resources.h"

#define DOCUMENT_MAX 16384 /* bytes */

/* Starts that process, which ends with this one. Returns the descriptor to ask it over, or -1.
 * Before this process gives up its rights. */
int documents_start(const struct account *account, struct err *e);

/*
 * Appends the document at url (https, checked there), of at most DOCUMENT_MAX bytes, without
 * following a redirect, within some seconds. *e may be shown to the caller: see fetch_url.
 */
int document_fetch(int fetch_fd, const char *url, struct buf *out, struct err *e);
