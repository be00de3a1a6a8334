/*
 * The state of a conversation in the store: who it is, its generation, and what its files are. It
 * is written last, so that what it names is there. A copy of it stays in .state/saved
 * (common/sandbox/state/unsaved.h), with what tells that a file here has not changed since.
 *
 * One JSON object a line: the head, an entry for each folder, file and link, a folder before what
 * is in it, and the end with their number. Names and targets are percent-encoded.
 */
#pragma once

#include "common/sandbox/sandbox_root.h"
#include "common/store/payload.h"

#include <sys/stat.h>
#include <time.h>

#define MANIFEST_ENTRIES_MAX 1000000
#define MANIFEST_MAX         (512u * 1024 * 1024) /* bytes */
#define MANIFEST_HEAD_MAX    8192
#define MANIFEST_TARGET_MAX  4095 /* bytes of a link's target */

enum manifest_type { MANIFEST_FOLDER, MANIFEST_FILE, MANIFEST_LINK, MANIFEST_TYPES };

struct manifest_entry {
    char *name; /* any bytes that pass beneath_name_fits */
    enum manifest_type type;
    mode_t mode;           /* permissions; of a link 0 */
    struct timespec mtime; /* of a link 0 */
    char *target;          /* of a link; else NULL */
    /* of a file */
    uint64_t size;
    char sum[PAYLOAD_SUM_LEN + 1]; /* its content's key */
    uint64_t bytes;                /* of the content, without holes */
    struct extent *extents;
    size_t n_extents;
    /* of the file here; 0: not known */
    uint64_t ino;
    int64_t ctime_ns;
};

struct manifest {
    uint64_t generation; /* from 1 on; 0: the store has none */
    char *node;          /* that wrote it; "": one without a name */
    char *tenant, *conversation;
    int64_t last_used; /* Unix seconds */
    struct manifest_entry *entries;
    size_t n;
};

#define AUTO_MANIFEST AUTO(manifest_clear)

/* Appends it; with here what is known of the files here, too. -1: out is full. */
int manifest_write(const struct manifest *m, bool here, struct buf *out);
/* ERR_INVALID: it is damaged. Whatever it says, names lead nowhere outside, and sizes can be added.
 */
int manifest_parse(const char *text, size_t len, struct manifest *out, struct err *e);
/* Only the head, for which MANIFEST_HEAD_MAX bytes are enough; no entries. */
int manifest_parse_head(const char *text, size_t len, struct manifest *out, struct err *e);
void manifest_clear(struct manifest *m);
void manifest_entry_clear(struct manifest_entry *entry);

/* Appends a cleared entry, which the caller fills. */
struct manifest_entry *manifest_add(struct manifest *m);

/* The entries by name, for manifest_find; caller frees. m must not change meanwhile. */
const struct manifest_entry **manifest_index(const struct manifest *m);
/* NULL: there is none. */
const struct manifest_entry *manifest_find(const struct manifest_entry *const *index, size_t n,
                                           const char *name);
/* The sums of its files, each once, sorted; caller frees. */
const char **manifest_sums(const struct manifest *m, size_t *out_n);
bool manifest_has_sum(const char *const *sums, size_t n, const char *sum);

/* The bytes of its files on a disk, about, and the number of its entries. */
struct usage manifest_usage(const struct manifest *m);
