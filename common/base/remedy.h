/*
 * What mends a fault, in words for its reader: a row for each remedy, a column for each reader.
 * Sentences that name a command take it from here (tests/lint/remedies.sh).
 */
#pragma once

/* The reader. Operators are told the commands of their way to run the server. */
enum way {
    WAY_MODEL,    /* no command, no setting; what its user can be told */
    WAY_STDIO,    /* the user of a client that has started the server */
    WAY_START_SH, /* a clone with start.sh */
    WAY_SYSTEMD,  /* the package or "make install", with systemd */
    WAY_COMPOSE,
    WAY_OTHER, /* started by other means */
    WAYS,
};

enum remedy {
    REMEDY_START,
    REMEDY_RESTART,
    REMEDY_RELOAD,
    REMEDY_LOGS,
    REMEDY_OAUTH_CODE,
    REMEDY_STATUS,
    REMEDY_DOCTOR,
    REMEDY_RUNNERS,       /* build the images of runners */
    REMEDY_RUNNERS_AGAIN, /* though they are of this version */
    REMEDY_ENGINE,
    REMEDY_ENGINE_OPEN, /* its socket may not be opened */
    REMEDY_NETWORK,
    REMEDY_DISK,
    REMEDY_DISK_WRITABLE,
    REMEDY_CLOCK,
    REMEDY_SITE, /* make the web server's files again */
    REMEDY_SITE_START,
    REMEDY_SITE_RELOAD,
    REMEDY_TOKEN,
    REMEDY_TOKEN_LIST,
    REMEDY_TOKEN_OTHER, /* in place of one that is weak or expires */
    REMEDY_SECRET_FILE,
    REMEDY_PASSPHRASE,
    REMEDIES,
};

/* The text for the operator, or the user at stdio; never WAY_MODEL's. */
const char *remedy(enum remedy what);
/* "": that reader is never told of it. */
const char *remedy_for(enum remedy what, enum way reader);

/* find is called at the first remedy() of the process. Without it the way is WAY_OTHER. */
void remedy_find_way(enum way (*find)(void));
enum way remedy_way(void);
