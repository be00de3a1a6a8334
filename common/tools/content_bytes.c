#include "config.h"

#include "common/tools/content_bytes.h"

#include "common/base/auto.h"
#include "common/base/b64.h"
#include "common/base/fdio.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

int content_bytes_decode(struct run_text content, uint64_t max, struct buf *out, struct err *e)
{
    out->max = (size_t)max;
    if (b64_decode(content.data, content.len, out) == 0 && buf_ok(out))
        return 0;
    if (!buf_ok(out))
        return err_set(e, ERR_LIMIT, "argument 'content' decodes to more than %" PRIu64 " bytes",
                       max);
    return err_set(e, ERR_INVALID,
                   "argument 'content' is not base64 (standard alphabet, padded with '=', without "
                   "blanks or line breaks)");
}

int content_bytes_fd(const struct buf *content, struct err *e)
{
    AUTO_FD int fd = memfd_create("upload", MFD_CLOEXEC);

    if (fd < 0)
        return err_errno(e, "making room for the file");
    if (fdio_write_all(fd, content->data, content->len, e) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_errno(e, "rewinding the file");
    return TAKE_FD(fd);
}
