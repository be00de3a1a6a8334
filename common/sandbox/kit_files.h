/* The programs that containers which stay get from us, as they were built. Internal to
 * common/sandbox. */
#ifndef SANDCGI_SANDBOX_KIT_FILES_H
#define SANDCGI_SANDBOX_KIT_FILES_H

struct kit_file {
    const char *name; /* in the containers */
    const char *begin, *end;
};

/* Ends with name NULL. */
extern const struct kit_file kit_files[];

#endif
