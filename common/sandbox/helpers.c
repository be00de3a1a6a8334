#include "config.h"

#include "common/sandbox/helpers.h"

#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/sandbox/files/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDER_MODE 0755
#define FILE_MODE   0555
#define NAME_BYTES  8 /* of the digest that is the folder's name */

/* The bytes of a file between two symbols. Paths are those of the build folder. */
#define EMBED(symbol, path)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global helper_" #symbol ", helper_" #symbol "_end\n"                                 \
            "helper_" #symbol ": .incbin \"" path "\"\n"                                           \
            "helper_" #symbol "_end: .byte 0\n"                                                    \
            ".popsection\n");                                                                      \
    extern const char helper_##symbol[], helper_##symbol##_end[]

EMBED(entry, "runners/common/entry");
EMBED(python, HELPERS_SOURCES "/runners/workbench/python/session.py");
EMBED(typescript, HELPERS_SOURCES "/runners/workbench/typescript/session.mjs");

static const char hosts[] = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";

const struct helper_file helper_files[] = {
    {"entry", helper_entry, helper_entry_end},
    {"session.py", helper_python, helper_python_end},
    {"session.mjs", helper_typescript, helper_typescript_end},
    {"hosts", hosts, hosts + sizeof hosts - 1},
    {NULL, NULL, NULL},
};

/* Of names and contents. */
static int name_helpers(char out[CRYPTO_HEX_LEN(NAME_BYTES)], struct err *e)
{
    struct crypto_part parts[16];
    uint8_t digest[CRYPTO_SHA256_LEN];
    size_t n = 0;

    for (const struct helper_file *f = helper_files; f->name; f++) {
        parts[n++] = (struct crypto_part){f->name, strlen(f->name)};
        parts[n++] = (struct crypto_part){f->begin, (size_t)(f->end - f->begin)};
    }
    if (crypto_hmac("kit", 3, parts, n, digest, e) < 0)
        return -1;
    crypto_hex(digest, NAME_BYTES, out);
    return 0;
}

static int open_folder(int dir_fd, const char *name, struct err *e)
{
    AUTO_FD int fd = -1;

    if (mkdirat(dir_fd, name, FOLDER_MODE) < 0 && errno != EEXIST)
        return err_errno(e, "creating %s", name);
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, FOLDER_MODE) < 0)
        return err_errno(e, "opening %s", name);
    return TAKE_FD(fd);
}

static bool is_there(int dir_fd, const struct helper_file *file)
{
    AUTO_BUF struct buf have = BUF_INIT((size_t)(file->end - file->begin));
    AUTO_FD int fd = openat(dir_fd, file->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct err e = ERR_INIT;
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           (st.st_mode & 07777) == FILE_MODE && fdio_read_to_end(fd, &have, &e) == 0 &&
           have.len == have.max && memcmp(have.data, file->begin, have.len) == 0;
}

static int write_file(const struct sandbox_root *root, int dir_fd, const struct helper_file *file,
                      struct err *e)
{
    AUTO_STAGED struct staged staged = STAGED_INIT;
    AUTO_FD int fd = staging_create_file(root, &staged);

    if (fd < 0)
        return err_errno(e, HELPERS_DIR "/%s cannot be made", file->name);
    if (fdio_write_all(fd, file->begin, (size_t)(file->end - file->begin), e) < 0)
        return e->sys == ENOSPC || e->sys == EDQUOT
                   ? err_set(e, ERR_IO,
                             "SANDBOX_ROOT: no room for " HELPERS_DIR "/%s of this version; remove "
                             "files, or enlarge the file system, and the server goes on",
                             file->name)
                   : err_wrap(e, HELPERS_DIR "/%s", file->name);
    if (fchmod(fd, FILE_MODE) < 0 ||
        staged_move(&staged, dir_fd, file->name, STAGED_MOVE_REPLACE) < 0)
        return err_errno(e, HELPERS_DIR "/%s cannot be put in its place", file->name);
    return 0;
}

char *helpers_install(const struct sandbox_root *root, struct err *e)
{
    char name[CRYPTO_HEX_LEN(NAME_BYTES)];
    AUTO_FD int all_fd = open_folder(root->fd, HELPERS_DIR, e);
    AUTO_FD int fd = -1;

    if (all_fd < 0 || name_helpers(name, e) < 0)
        return NULL;
    fd = open_folder(all_fd, name, e);
    if (fd < 0)
        return NULL;
    for (const struct helper_file *f = helper_files; f->name; f++) {
        if (!is_there(fd, f) && write_file(root, fd, f, e) < 0)
            return NULL;
    }
    return mem_printf("%s/" HELPERS_DIR "/%s", root->host_path, name);
}
