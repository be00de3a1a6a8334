#include "config.h"

#include "common/sandbox/links/upload.h"

#include "common/sandbox/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SWEEP_AGE_S 3600

int upload_stage(const struct sandbox_root *root, struct err *e)
{
    int fd = openat(root->fd, STAGING_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* This file system has no files without a name; one that lost its name does, too. */
    AUTO_STAGED struct staged file = STAGED_INIT;
    fd = staging_create_file(root, &file);
    return fd < 0 ? err_errno(e, "the upload cannot be stored") : fd;
}

static bool is_nginx_name(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= STAGING_NAME_LEN && strspn(name, "0123456789") == len;
}

int upload_of_nginx(const struct sandbox_root *root, const char *name, struct upload_body *out,
                    struct err *e)
{
    struct stat st;

    if (!is_nginx_name(name))
        return err_set(e, ERR_INVALID, "the web server named no file of an upload");
    AUTO_FD int dir = openat(root->fd, UPLOAD_NGINX_DIR,
                             O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO_FD int fd = dir < 0 ? -1
                             : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == EACCES)
        return err_set(e, ERR_UNAVAILABLE,
                       "this server's account may not read what the web server's writes; see "
                       "UPLOADS in nginx/README.md");
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
        return err_set(e, ERR_INVALID, "the web server's file of the upload is not there");
    *out = (struct upload_body){
        .staged = {.dir_fd = TAKE_FD(dir)}, .fd = TAKE_FD(fd), .size = (uint64_t)st.st_size};
    snprintf(out->staged.name, sizeof(out->staged.name), "%s", name);
    return 0;
}

int upload_of_stage(const struct sandbox_root *root, int fd, struct upload_body *out, struct err *e)
{
    struct stat st, place;

    /* A file without a name in our tree is one that we made: programs have no descriptor of ours,
     * and nobody else passes one here. */
    if (fd < 0 || fstat(fd, &st) < 0 || fstat(root->fd, &place) < 0 || !S_ISREG(st.st_mode) ||
        st.st_nlink != 0 || st.st_dev != place.st_dev)
        return err_set(e, ERR_INVALID, "the content is not where uploads are written");
    *out = (struct upload_body)UPLOAD_BODY_INIT;
    out->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (out->fd < 0)
        return err_errno(e, "the upload cannot be stored");
    out->size = (uint64_t)st.st_size;
    return 0;
}

int upload_move(const struct sandbox *sb, const char *name, struct upload_body *body, struct err *e)
{
    if (!body->staged.name[0] && staging_name_file(sb->root, body->fd, &body->staged) < 0) {
        if (lseek(body->fd, 0, SEEK_SET) < 0)
            return err_errno(e, "the upload cannot be read");
        return files_put(sb, name, body->fd, body->size, true, e);
    }
    return files_put_staged(sb, name, &body->staged, body->fd, e);
}

void upload_body_clear(struct upload_body *body)
{
    staged_clear(&body->staged);
    auto_close_fd(&body->fd);
}

void uploads_sweep(const struct sandbox_root *root)
{
    staging_sweep_files(root, UPLOAD_NGINX_DIR, is_nginx_name, SWEEP_AGE_S);
}
