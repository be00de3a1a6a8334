/*
 * Tickets: leave for one upload. Each is a file SANDBOX_ROOT/.tickets/<id> that says what may be
 * put where; using it removes it, so that it is good for one upload. Nobody can guess an id; the
 * link that holds it is signed and says until when it is good (link.h).
 */
#ifndef SANDCGI_SANDBOX_LINKS_TICKET_H
#define SANDCGI_SANDBOX_LINKS_TICKET_H

#include "common/sandbox/sandbox_root.h"

#include <stdint.h>

#define TICKET_ID_LEN 32

struct ticket {
    char *tenant, *conversation, *name; /* owned, of one that was read */
    uint64_t size;                      /* the file's; 0: not known yet */
    int64_t expires;                    /* Unix seconds */
};

#define TICKET_INIT                                                                                \
    {                                                                                              \
        .tenant = NULL                                                                             \
    }
#define AUTO_TICKET AUTO(ticket_clear)

int ticket_make(const struct sandbox_root *root, const struct ticket *ticket,
                char out_id[TICKET_ID_LEN + 1], struct err *e);

/* ERR_EXISTS when it was used (or was never made: whoever asks has a signed link to it). Whether it
 * has expired is the caller's to judge: an upload that began in time may end later. */
int ticket_read(const struct sandbox_root *root, const char *id, struct ticket *out, struct err *e);
void ticket_clear(struct ticket *ticket);

/* Uses it up. Of several that try at the same time one succeeds, the others get ERR_EXISTS. */
int ticket_use(const struct sandbox_root *root, const char *id, struct err *e);

/* Removes those that expired so long ago that no upload can have begun with them. */
void tickets_sweep(const struct sandbox_root *root);

#endif
