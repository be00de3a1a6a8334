/*
 * What the process that takes archives apart does with foreign bytes, and what is made of its
 * words: whatever the archive, the records are well-formed, end with the one that says how it went,
 * and bring no more content than allowed.
 */
#include "config.h"

#include "common/base/charset.h"
#include "tests/fuzz/fuzz.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/archive/archive_privsep.h"

#include <stdbool.h>
#include <sys/mman.h>

#define CONTENT_MAX (1u << 20)

static int memory_of(const uint8_t *data, size_t len)
{
    struct err e = ERR_INIT;
    int fd = memfd_create("archive", MFD_CLOEXEC);

    PROMISE(fd >= 0 && fdio_write_all(fd, data, len, &e) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

static void check_records(int fd)
{
    static struct archive_record r;
    struct err e = ERR_INIT;
    size_t content = 0;
    bool in_file = false;

    do {
        PROMISE(archive_record_read(fd, DEADLINE_NEVER, &r, &e) == 0);
        PROMISE(r.tag != ARCHIVE_BYTES || in_file);
        content += r.tag == ARCHIVE_BYTES ? r.len : 0;
        in_file = r.tag == ARCHIVE_FILE || (in_file && r.tag == ARCHIVE_BYTES);
    } while (r.tag != ARCHIVE_END && r.tag != ARCHIVE_REFUSED);
    PROMISE(content <= CONTENT_MAX);
    PROMISE(archive_record_read(fd, DEADLINE_NEVER, &r, &e) < 0);
    promise_error(&e);
}

/* The same bytes as records, as an archive reader would send them that was taken over. */
static void check_as_records(const uint8_t *data, size_t len)
{
    static struct archive_record r;
    struct err e = ERR_INIT;
    AUTO_FD int fd = memory_of(data, len);

    while (archive_record_read(fd, DEADLINE_NEVER, &r, &e) == 0)
        PROMISE(r.len <= ARCHIVE_RECORD_MAX && r.data[r.len] == '\0');
    promise_error(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FD int archive = memory_of(data, len);

    charset_prepare();
    for (int lenient = 0; lenient < 2; lenient++) {
        AUTO_FD int records = memory_of(NULL, 0);

        unpack_read(archive, records, CONTENT_MAX, lenient);
        PROMISE(lseek(records, 0, SEEK_SET) == 0 && lseek(archive, 0, SEEK_SET) == 0);
        check_records(records);
    }
    check_as_records(data, len);
    return 0;
}
