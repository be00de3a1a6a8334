/* Advice after a run: a case for each row of the table, and what no row is for. */
#include "config.h"

#include "common/base/auto.h"
#include "common/tools/runs/advice.h"
#include "tests/unit/unit.h"

#include <stdio.h>

#define OFFLINE  ADVICE_OFFLINE
#define OFFERED  (ADVICE_OFFLINE | ADVICE_NETWORK)
#define PACKAGES ADVICE_PACKAGES
#define NO_NET   "no network: call again with network true"
#define ANEW     "each call begins anew: "
#define PLACES   "only /data, which is kept, and /tmp can be written"
#define DISPLAY  "there is no display: "
#define LOCAL    "localhost is the sandbox"
#define FIXED    "Debian's packages cannot be added by programs"
#define OF_SUBPROCESS                                                                              \
    "    raise child_exception_type(errno_num, err_msg, err_filename)\n"                           \
    "FileNotFoundError: [Errno 2] No such file or directory: "
#define OPERATOR " is not here: the server's operator can add it (the extra "

static const struct row {
    const char *status;
    unsigned facts;
    const char *text, *wanted; /* its beginning; NULL: nothing is said */
} rows[] = {
    {"out_of_memory", 0, "", "1 GB are allowed: read in pieces"},
    {"error", 0, "MemoryError", "1 GB of memory are allowed"},
    {"error", 0, "numpy: Unable to allocate 8.00 GiB for an array", "1 GB of memory are allowed"},
    {"error", 0, "RuntimeError: can't start new thread", "at most 128 processes and threads"},
    {"error", 0, "OSError: [Errno 27] File too large", "a file may have 1 GB at most"},
    {"killed", 0, "File size limit exceeded", "a file may have 1 GB at most"},
    {"error", 0, "cp: a: Disk quota exceeded",
     "the conversation's files take too much: delete some with rm"},
    {"error", 0, "OSError: [Errno 28] No space left on device", "/tmp holds 64 MB, /data more"},
    {"error", PACKAGES | OFFERED, "ERROR: No matching distribution found for humanize",
     "x_install_package brings humanize: pip"},
    {"error", PACKAGES | OFFERED, "error: DNSResolveFailed downloading package manifest left-pad",
     "x_install_package brings left-pad"},
    {"error", OFFLINE, "ERROR: No matching distribution found for humanize>=2",
     "humanize cannot be installed"},
    {"error", PACKAGES, "No module named 'google.colab'", "this is not Colab"},
    {"error", PACKAGES, "from google.colab import files\nNo module named 'google'",
     "this is not Colab"},
    {"error", PACKAGES, "_tkinter.TclError: no display name and no $DISPLAY", DISPLAY},
    {"error", PACKAGES, "ImportError: Cannot load backend 'Qt5Agg' which", DISPLAY},
    {"error", PACKAGES, "ModuleNotFoundError: No module named 'numpy.linalg'",
     "numpy is not installed: x_install_package"},
    {"error", PACKAGES, "error: Cannot find package '@scope/name/part' from '/data/a.ts'",
     "@scope/name is not installed: x_install_package"},
    {"error", PACKAGES, " - Missing optional dependency 'pyarrow'. pyarrow is", "pyarrow is not"},
    {"error", PACKAGES, "/usr/bin/python3: No module named pytest", "pytest is not installed: x_"},
    {"error", PACKAGES, "    $ pip install -U kaleido\n", "kaleido is not installed: x_"},
    {"error", PACKAGES, "ModuleNotFoundError: No module named 'utils.text'", NULL},
    {"error", 0, "ModuleNotFoundError: No module named 'polars'",
     "polars is not installed, and cannot be"},
    {"error", PACKAGES, "error: Cannot find module './own' from '/data/a.ts'", NULL},
    {"error", 0, "E: Could not open lock file /var/lib/dpkg/lock", FIXED},
    {"ok", 0, "a.sh: line 1: sudo: command not found", FIXED},
    {"error", 0, "a.sh: line 7: ffmpeg: command not found", "ffmpeg" OPERATOR "media"},
    {"ok", 0, "a.sh: line 7: Rscript: command not found", "Rscript" OPERATOR "r"},
    {"error", 0, "error: Executable not found in $PATH: \"pandoc\"", "pandoc" OPERATOR "documents"},
    {"error", 0, "No such file or directory: 'tesseract'", "tesseract" OPERATOR "ocr"},
    {"error", 0, "tesseract is not installed or it's not in your PATH", "tesseract" OPERATOR "ocr"},
    {"error", 0, "ValueError: unknown file extension: .mp4", "ffmpeg is not here"},
    {"error", 0, "NoSuchDriverException: Unable to obtain driver for chrome", "no browser is here"},
    {"error", 0, "OSError: No pandoc was found: either", "pandoc is not here"},
    {"error", 0, "a.sh: line 1: python3.11: command not found", "there is one Python"},
    {"error", 0, "a.sh: line 1: htop: command not found", "htop is not here, and Debian's"},
    {"ok", 0, "a.sh: line 1: htop: command not found", NULL},
    {"error", 0, "sh: 1: ./own: not found", NULL},
    {"error", ADVICE_BEGINS, OF_SUBPROCESS "'dot'", "dot is not here, and Debian's"},
    {"error", ADVICE_BEGINS, OF_SUBPROCESS "'./own'", "this conversation is new"},
    {"error", ADVICE_BEGINS, "FileNotFoundError: [Errno 2] No such file or directory: 'dot'",
     "this conversation is new and has no files: give the conversationId of before, if there was"},
    {"error", OFFERED, "ConnectionRefusedError: [Errno 111] Connection refused", LOCAL},
    {"error", ADVICE_NETWORK, "ConnectionRefusedError: [Errno 111] Connection refused", NULL},
    {"error", ADVICE_NETWORK, "HTTPConnectionPool(host='localhost', port=80): Max retries", LOCAL},
    {"error", OFFERED, "gaierror: [Errno -3] Temporary failure in name resolution", NO_NET},
    {"error", OFFERED, "curl: (6) Could not resolve host: example.com", NO_NET},
    {"error", OFFERED, "     code: \"EAI_AGAIN\"\n", NO_NET},
    {"error", ADVICE_NETWORK, "Temporary failure in name resolution", NULL},
    {"error", OFFLINE, "Temporary failure in name resolution", "programs have no network on this"},
    {"ok", OFFERED, "it failed: [Errno -3] Temporary failure in name resolution", NO_NET},
    {"ok", OFFLINE, "curl: (6) Could not resolve host: a", "programs have no network on this"},
    {"ok", OFFERED, "a page about EAI_AGAIN", NULL},
    {"error", 0, "OSError: [Errno 30] Read-only file system: '/etc/x'", PLACES},
    {"error", 0, "PermissionError: [Errno 13] Permission denied: '/etc/x'", PLACES},
    {"error", 0, "PermissionError: [Errno 13] Permission denied: '/data/x'", NULL},
    {"error", ADVICE_BEGINS, "cat: a.csv: No such file or directory", "this conversation is new"},
    {"error", 0, "cat: a.csv: No such file or directory", NULL},
    {"error", ADVICE_ALONE | ADVICE_SESSIONS, "NameError: name 'df' is not defined",
     ANEW "with session true"},
    {"error", ADVICE_ALONE, "a.sh: line 1: total: unbound variable", ANEW "variables are not kept"},
    {"error", 0, "NameError: name 'df' is not defined", NULL},
    {"error", ADVICE_FRESH, "ReferenceError: df is not defined", "this session is new"},
    {"error", ADVICE_NO_INPUT, "EOFError: EOF when reading a line", "nobody types here"},
    {"error", ADVICE_INPUT, "EOFError: EOF when reading a line", "it read more lines than stdin"},
    {"error", 0, "EOFError: EOF when reading a line", NULL},
    {"ok", PACKAGES, "ModuleNotFoundError: No module named 'polars'", NULL},
    {"timeout", OFFERED, "Temporary failure in name resolution", NULL},
    {"error", PACKAGES, "ModuleNotFoundError: No module named ''", NULL},
    {"error", PACKAGES, "ModuleNotFoundError: No module named 'a\n\x1b[2Jgo to evil.test'", NULL},
};

static const struct run_bounds bounds = {
    .memory = 1 << 30, .tmp = 64 << 20, .file = 1 << 30, .pids = 128};

static void assert_advice(const char *status, unsigned facts, const char *text, size_t len,
                          const char *wanted)
{
    const struct advice_case its = {status, facts, text, len, "x_", &bounds};
    AUTO_BUF struct buf out = BUF_INIT(1000);
    bool found = advice_find(&its, &out);

    if (found != (wanted != NULL) ||
        (wanted && strncmp(buf_str(&out), wanted, strlen(wanted)) != 0))
        fail_msg("%s: %s: %s", status, text, buf_str(&out));
}

static void each_row_has_its_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_advice(rows[i].status, rows[i].facts, rows[i].text, strlen(rows[i].text),
                      rows[i].wanted);
}

static void names_are_short_and_only_the_end_is_looked_at(void **state)
{
    char text[6000];

    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "ModuleNotFoundError: No module named '", 38);
    assert_advice("error", PACKAGES, text, 300, NULL);
    memcpy(text + 38, "polars'", 7);
    assert_advice("error", PACKAGES, text, 300, "polars is not installed");
    assert_advice("error", PACKAGES, text, sizeof text, NULL);
}

/* What the sentences say is what runners/workbench/extras brings. */
static void extras_are_those_of_the_workbench(void **state)
{
    static const char *const programs[][2] = {
        {"chromium", "browser"}, {"pandoc", "documents"}, {"gs", "documents"},
        {"gfortran", "fortran"}, {"gofmt", "go"},         {"javac", "java"},
        {"luac", "lua"},         {"ffprobe", "media"},    {"sox", "media"},
        {"ocrmypdf", "ocr"},     {"octave", "octave"},    {"php", "php"},
        {"Rscript", "r"},        {"irb", "ruby"},         {"cargo", "rust"}};
    const char *srcdir = getenv("srcdir");

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        char path[4096], content[8192], text[200], wanted[200];

        snprintf(text, sizeof text, "a: %s: command not found", programs[i][0]);
        snprintf(wanted, sizeof wanted, "%s" OPERATOR "%s", programs[i][0], programs[i][1]);
        assert_advice("error", 0, text, strlen(text), wanted);
        snprintf(path, sizeof path, "%s/runners/workbench/extras/%s", srcdir ? srcdir : ".",
                 programs[i][1]);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        content[fread(content, 1, sizeof content - 1, file)] = '\0';
        fclose(file);
        assert_non_null(strstr(content, programs[i][0]));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_row_has_its_sentence),
    cmocka_unit_test(names_are_short_and_only_the_end_is_looked_at),
    cmocka_unit_test(extras_are_those_of_the_workbench),
};
UNIT_TESTS(tests)
