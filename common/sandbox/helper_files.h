/* The programs that containers which stay get from us, as they were built. Internal to
 * common/sandbox. */
#ifndef SANDCGI_SANDBOX_HELPER_FILES_H
#define SANDCGI_SANDBOX_HELPER_FILES_H

struct helper_file {
    const char *name; /* in the containers */
    const char *begin, *end;
};

/* Ends with name NULL. */
extern const struct helper_file helper_files[];

#endif
