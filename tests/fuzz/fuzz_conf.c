/* The settings file: whatever stands in it, what is accepted prints as text that reads back the
 * same. */
#include "config.h"

#include "common/base/conf.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>

struct sample {
    char *text, *secret, *words;
    uint64_t number, size, time, cpus, fixed;
    bool flag;
    int choice;
};

#define FIELD(f) offsetof(struct sample, f)

static const struct conf_row table[] = {
    {"T_TEXT", CONF_STRING, FIELD(text), "x", 2, 20, NULL, 0, ""},
    {"T_SECRET", CONF_STRING, FIELD(secret), "", 0, 0, NULL, CONF_SECRET, ""},
    {"T_NUMBER", CONF_NUMBER, FIELD(number), "7", 1, 1000, NULL, 0, ""},
    {"T_SIZE", CONF_BYTES, FIELD(size), "1m", 0, UINT64_MAX, NULL, 0, ""},
    {"T_TIME", CONF_DURATION, FIELD(time), "30s", 0, 0, NULL, 0, ""},
    {"T_CPUS", CONF_MILLI, FIELD(cpus), "0.5", 0, 0, NULL, 0, ""},
    {"T_FLAG", CONF_BOOL, FIELD(flag), "true", 0, 0, NULL, 0, ""},
    {"T_WORDS", CONF_STRING, FIELD(words), "", 0, 0, NULL, CONF_LIST, ""},
    {"T_FIXED", CONF_NUMBER, FIELD(fixed), "7", 1, 9, NULL, CONF_FIXED, ""},
    {"T_CHOICE", CONF_CHOICE, FIELD(choice), "", 0, 0, "one|two|three", 0, ""},
    {0},
};

static const struct conf_other others[] = {
    {.name = "T_COUNT", .ours = "T_NUMBER"},
    {.name = "T_WAIT_S", .ours = "T_TIME", .unit = "s"},
    {.name = "OTHER_KIND", .ours = "T_CHOICE", .words = "first=one|second=two"},
    {.name = "OTHER_GONE", .instead = "nothing is lost"},
    {0},
};

static void read_back(const struct conf_row *row, struct sample *loaded)
{
    struct err e = ERR_INIT;
    struct sample again = {0};
    AUTO_BUF struct buf text = BUF_INIT(8192), second = BUF_INIT(8192);
    conf_format(row, loaded, &text);
    PROMISE(conf_set(row, &again, buf_str(&text), "printed", &e) == 0);
    conf_format(row, &again, &second);
    PROMISE(strcmp(buf_str(&text), buf_str(&second)) == 0);
    conf_clear(table, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err e = ERR_INIT;
    struct sample loaded = {0};
    AUTO_FD int fd = memfd_create("settings", MFD_CLOEXEC);
    AUTO_BUF struct buf notes = BUF_INIT(16 * 1024);
    AUTO_FREE char *path = mem_printf("/proc/self/fd/%d", fd);
    PROMISE(fd >= 0 && fdio_write_all(fd, data, len, &e) == 0);

    if (conf_load(&(struct conf_source){.table = table, .others = others, .path = path}, &loaded,
                  &notes, &e) < 0)
        promise_error(&e);
    else
        for (const struct conf_row *row = table; row->name; row++)
            read_back(row, &loaded);
    conf_clear(table, &loaded);
    return 0;
}
