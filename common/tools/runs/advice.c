#include "config.h"

#include "common/tools/runs/advice.h"

#include "common/base/auto.h"
#include "common/tools/words.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOOKED_AT    4096 /* bytes at the end of the output */
#define PATTERNS_MAX 10

enum ending {
    FAILED = 1 << 0,
    WELL = 1 << 1,
    NO_MEMORY = 1 << 2,
    KILLED = 1 << 3,
};

/* What the name in the output must be. */
enum name_rule {
    ANY_NAME,
    OF_PACKAGE, /* cut to a package's own name, which is not one of the user's modules */
    OF_COMMAND, /* no path */
    OF_PROGRAM, /* one of the extras */
    OUTSIDE,    /* a path that programs cannot write to */
};

struct row {
    unsigned endings; /* enum ending; 0: FAILED */
    unsigned facts;   /* that must be */
    unsigned without; /* that must not */
    enum name_rule name;
    /* Any of them; "*" stands for a name; "" is in everything. */
    const char *patterns[PATTERNS_MAX];
    /* {name}, {extra}: of the name; {tool}: what stands before a tool's; {memory}, {tmp}, {file},
     * {pids}: the bounds of a run. */
    const char *sentence;
};

/* Programs that an extra of the workbench brings (runners/workbench/extras). */
static const struct {
    const char *extra, *programs;
} extras[] = {
    {"browser", " chromium chromedriver chrome google-chrome chromium-browser "},
    {"documents", " pandoc soffice libreoffice gs qpdf "},
    {"fortran", " gfortran "},
    {"go", " go gofmt "},
    {"java", " java javac "},
    {"lua", " lua luac "},
    {"media", " ffmpeg ffprobe convert exiftool mediainfo sox "},
    {"ocr", " tesseract ocrmypdf "},
    {"octave", " octave "},
    {"php", " php "},
    {"r", " R Rscript "},
    {"ruby", " ruby gem irb "},
    {"rust", " cargo rustc "},
};

#define OPERATORS_EXTRA "{name} is not here: the server's operator can add it (the extra {extra})"

#define UNRESOLVED                                                                                 \
    "Temporary failure in name resolution", "Could not resolve host", "EAI_AGAIN",                 \
        "Name or service not known", "getaddrinfo ENOTFOUND", "DNSResolveFailed",                  \
        "unable to resolve host", "Network is unreachable", "ENETUNREACH", "Failed to resolve '*'"
#define CAUGHT                                                                                     \
    "[Errno -3] Temporary failure in name resolution", "curl: (6) Could not resolve host",         \
        "getaddrinfo EAI_AGAIN"
#define LOCALHOST                                                                                  \
    "localhost is the sandbox, not the user's computer: only what the same program starts "        \
    "answers there"
#define ASK_NETWORK   "no network: call again with network true"
#define NEVER_NETWORK "programs have no network on this server"

/* The first row that fits decides. */
static const struct row rows[] = {
    /* ---- memory, processes, disk ---- */
    {NO_MEMORY, .patterns = {""},
     .sentence = "{memory} are allowed: read in pieces, use smaller types, fewer columns, a lower "
                 "dpi"},
    {FAILED,
     .patterns = {"MemoryError", "std::bad_alloc", "Cannot allocate memory",
                  "RangeError: Out of memory", "Unable to allocate "},
     .sentence = "{memory} of memory are allowed: read in pieces, use smaller types"},
    {.patterns = {"can't start new thread", "fork: retry: Resource temporarily unavailable",
                  "fork: Resource temporarily unavailable", "pthread_create failed",
                  "BlockingIOError: [Errno 11] Resource temporarily unavailable", "Cannot fork",
                  "fork failed: Resource temporarily", "spawn * EAGAIN"},
     .sentence = "at most {pids} processes and threads at once: use fewer workers"},
    {FAILED | KILLED,
     .patterns = {"[Errno 27] File too large", "File too large", "EFBIG",
                  "File size limit exceeded"},
     .sentence = "a file may have {file} at most"},
    {.patterns = {"Disk quota exceeded", "EDQUOT"},
     .sentence = "the conversation's files take too much: delete some with rm"},
    {.patterns = {"No space left on device", "ENOSPC"}, .sentence = "/tmp holds {tmp}, /data more"},

    /* ---- packages ---- */
    {.facts = ADVICE_PACKAGES | ADVICE_OFFLINE,
     .name = OF_PACKAGE,
     .patterns = {"No matching distribution found for *", "satisfies the requirement * ",
                  "downloading package manifest *", "downloading tarball *"},
     .sentence = "{tool}install_package brings {name}: pip and npm reach no index here"},
    {.facts = ADVICE_OFFLINE,
     .without = ADVICE_PACKAGES,
     .name = OF_PACKAGE,
     .patterns = {"No matching distribution found for *", "satisfies the requirement * ",
                  "downloading package manifest *", "downloading tarball *"},
     .sentence = "{name} cannot be installed: no package index can be reached"},
    {.patterns = {"No module named 'google.colab", "google.colab import "},
     .sentence = "this is not Colab: files are in /data"},
    {.patterns = {"No module named 'tkinter'", "No module named '_tkinter'",
                  "no display name and no $DISPLAY", "couldn't connect to display",
                  "could not connect to display", "Cannot load backend '*'", "cannot open display",
                  "Unable to access the X Display", "qt.qpa.xcb: ", "pygame.error: No available"},
     .sentence = "there is no display: save pictures to /data; open matplotlib figures are shown "
                 "without a backend"},
    {.facts = ADVICE_PACKAGES,
     .name = OF_PACKAGE,
     .patterns = {"ModuleNotFoundError: No module named '*'", "error: Cannot find package '*'",
                  "error: Cannot find module '*'", "Cannot find module \"*\"",
                  "Cannot find package \"*\"", "Missing optional dependency '*'",
                  "tried using: '*'", "No module named *", "pip install -U *", "pip install *"},
     .sentence = "{name} is not installed: {tool}install_package"},
    {.without = ADVICE_PACKAGES,
     .name = OF_PACKAGE,
     .patterns = {"ModuleNotFoundError: No module named '*'", "error: Cannot find package '*'",
                  "error: Cannot find module '*'", "Missing optional dependency '*'",
                  "tried using: '*'", "No module named *"},
     .sentence = "{name} is not installed, and cannot be"},

    /* ---- programs ---- */
    {FAILED | WELL,
     .patterns = {"E: Could not open lock file", "E: Unable to locate package",
                  "/var/lib/apt/lists/partial is missing", "sudo: command not found",
                  "apt-get: command not found", "apt: command not found", "apk: command not found",
                  "yum: command not found", "brew: command not found",
                  "dpkg: error: requested operation"},
     .sentence = "Debian's packages cannot be added by programs"},
    {FAILED | WELL, .name = OF_PROGRAM,
     .patterns = {": *: command not found", "command not found: *", ": *: not found",
                  "Executable not found in $PATH: \"*\""},
     .sentence = OPERATORS_EXTRA},
    {.name = OF_PROGRAM,
     .patterns = {"No such file or directory: '*'", "spawn * ENOENT", "spawnSync * ENOENT",
                  "failed to execute PosixPath('*')", "Couldn't find * or avconv",
                  "MovieWriter * unavailable", "requested MovieWriter (*)", "* is not installed or",
                  "* not found", "find the * binary"},
     .sentence = OPERATORS_EXTRA},
    {.patterns = {"unknown file extension: .mp4", "unknown file extension: .mov",
                  "unknown file extension: .webm"},
     .sentence =
         "ffmpeg is not here (the server's operator can add it, the extra media): save a GIF"},
    {.patterns = {"Unable to obtain driver for chrome", "cannot find Chrome binary",
                  "Executable doesn't exist at ", "Failed to launch the browser process",
                  "Could not find Chrome"},
     .sentence = "no browser is here: the server's operator can add it (the extra browser)"},
    {.patterns = {"No pandoc was found"},
     .sentence = "pandoc is not here: the server's operator can add it (the extra documents)"},
    {FAILED,
     .patterns = {"python2: command not found", "python3.8: command not found",
                  "python3.9: command not found", "python3.10: command not found",
                  "python3.11: command not found", "python3.12: command not found"},
     .sentence = "there is one Python: python3"},
    {FAILED, .name = OF_COMMAND,
     .patterns = {": *: command not found", "command not found: *", ": *: not found",
                  "Executable not found in $PATH: \"*\"", "spawn * ENOENT",
                  /* of subprocess: open() has no such line before it */
                  "err_filename)\nFileNotFoundError: [Errno 2] No such file or directory: '*'"},
     .sentence = "{name} is not here, and Debian's packages cannot be added"},

    /* ---- network ---- */
    {.patterns = {"host='localhost'", "host='127.0.0.1'", "to localhost port ",
                  "connecting to localhost", "ECONNREFUSED 127.0.0.1", "at \"localhost\"",
                  "on 'localhost", "localhost:*: Connection refused"},
     .sentence = LOCALHOST},
    /* Nothing else can refuse there. */
    {.facts = ADVICE_OFFLINE,
     .patterns = {"connect ECONNREFUSED", "ECONNREFUSED: ", "[Errno 111] Connection refused"},
     .sentence = LOCALHOST},
    {.facts = ADVICE_OFFLINE | ADVICE_NETWORK, .patterns = {UNRESOLVED}, .sentence = ASK_NETWORK},
    {.facts = ADVICE_OFFLINE, .patterns = {UNRESOLVED}, .sentence = NEVER_NETWORK},
    /* Where the exception was caught and printed. */
    {WELL, .facts = ADVICE_OFFLINE | ADVICE_NETWORK, .patterns = {CAUGHT}, .sentence = ASK_NETWORK},
    {WELL, .facts = ADVICE_OFFLINE, .patterns = {CAUGHT}, .sentence = NEVER_NETWORK},

    /* ---- files ---- */
    {.patterns = {"Read-only file system", "EROFS"},
     .sentence = "only /data, which is kept, and /tmp can be written"},
    {.name = OUTSIDE,
     .patterns = {"Permission denied: '*'", "permission denied, open '*'",
                  "permission denied, mkdir '*'", ": *: Permission denied",
                  "cannot create directory '*'", "cannot touch '*'"},
     .sentence = "only /data, which is kept, and /tmp can be written"},
    {.facts = ADVICE_BEGINS,
     .patterns = {"No such file or directory", "ENOENT", "FileNotFoundError"},
     .sentence = "this conversation is new and has no files: give the conversationId of before, if "
                 "there was one"},

    /* ---- variables and input ---- */
    {.facts = ADVICE_ALONE | ADVICE_SESSIONS,
     .name = ANY_NAME,
     .patterns = {"NameError: name '*' is not defined", "ReferenceError: * is not defined",
                  "Can't find variable: *"},
     .sentence = "each call begins anew: with session true variables are kept"},
    {.facts = ADVICE_ALONE,
     .patterns = {"NameError: name '*' is not defined", "ReferenceError: * is not defined",
                  ": *: unbound variable"},
     .sentence = "each call begins anew: variables are not kept, files in /data are"},
    {.facts = ADVICE_FRESH,
     .patterns = {"NameError: name '*' is not defined", "ReferenceError: * is not defined"},
     .sentence = "this session is new: there were no variables before this call"},
    {.facts = ADVICE_NO_INPUT,
     .patterns = {"EOFError: EOF when reading a line"},
     .sentence = "nobody types here: give the input as stdin"},
    {.facts = ADVICE_INPUT,
     .patterns = {"EOFError: EOF when reading a line"},
     .sentence = "it read more lines than stdin has"},
};

/* ---- names in the output ---- */

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("._/@+-~", c));
}

static const char *extra_of(const char *name)
{
    char word[ADVICE_NAME_MAX + 3];

    snprintf(word, sizeof word, " %s ", name);
    for (size_t i = 0; i < ARRAY_LEN(extras); i++)
        if (strstr(extras[i].programs, word))
            return extras[i].extra;
    return NULL;
}

/* Such modules are the user's own, and packages of these names are other things. */
static bool is_own_module(const char *name)
{
    static const char *const names[] = {"app",  "config", "helper", "helpers",  "lib",
                                        "main", "models", "module", "settings", "src",
                                        "test", "tests",  "util",   "utils"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* "numpy" of "numpy.linalg", "@scope/name" of "@scope/name/part", "lodash" of "lodash/fp". */
static bool cut_to_package(char *name)
{
    size_t scope = *name == '@' ? strcspn(name, "/") + 1 : 0;

    if (!isalnum((unsigned char)*name) && *name != '@' && *name != '_')
        return false;
    if (scope > strlen(name))
        return false;
    name[scope + strcspn(name + scope, scope ? "/" : "./")] = '\0';
    return !is_own_module(name);
}

static bool is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static bool name_fits(enum name_rule rule, char *name)
{
    switch (rule) {
    case OF_PACKAGE:
        return cut_to_package(name);
    case OF_COMMAND:
        return *name && !strchr(name, '/');
    case OF_PROGRAM:
        return extra_of(name) != NULL;
    case OUTSIDE:
        return *name == '/' && !is_below(name, "/data") && !is_below(name, "/mnt/data") &&
               !is_below(name, "/tmp");
    case ANY_NAME:
        break;
    }
    return *name != '\0';
}

/* ---- patterns ---- */

/* A name that ends where tail begins. */
static bool take_name(const char *at, const char *end, const char *tail, enum name_rule rule,
                      char name[ADVICE_NAME_MAX + 1])
{
    size_t len = 0, n = strlen(tail);

    while (at + len < end && len < ADVICE_NAME_MAX && is_of_name(at[len]))
        len++;
    if ((size_t)(end - at) < len + n || memcmp(at + len, tail, n) != 0)
        return false;
    memcpy(name, at, len);
    name[len] = '\0';
    return name_fits(rule, name);
}

/* A name in front of a text: "* not found". */
static bool take_name_before(const char *begin, const char *tail, enum name_rule rule,
                             char name[ADVICE_NAME_MAX + 1])
{
    size_t len = 0;

    while (tail - len > begin && len < ADVICE_NAME_MAX && is_of_name(tail[-(ptrdiff_t)len - 1]))
        len++;
    memcpy(name, tail - len, len);
    name[len] = '\0';
    return name_fits(rule, name);
}

static bool matches(const char *pattern, const char *text, size_t len, enum name_rule rule,
                    char name[ADVICE_NAME_MAX + 1])
{
    const char *star = strchr(pattern, '*'), *end = text + len;
    const char *fixed = star == pattern ? pattern + 1 : pattern;
    size_t n = star && star > pattern ? (size_t)(star - pattern) : strlen(fixed);
    const char *at = text;

    *name = '\0';
    for (; n > 0 && (at = memmem(at, (size_t)(end - at), fixed, n)); at++) {
        if (!star)
            return true;
        if (star == pattern ? take_name_before(text, at, rule, name)
                            : take_name(at + n, end, star + 1, rule, name))
            return true;
    }
    return n == 0;
}

static unsigned ending_of(const char *status)
{
    static const struct {
        const char *status;
        enum ending ending;
    } endings[] = {
        {"ok", WELL}, {"error", FAILED}, {"out_of_memory", NO_MEMORY}, {"killed", KILLED}};

    for (size_t i = 0; i < ARRAY_LEN(endings); i++)
        if (strcmp(status, endings[i].status) == 0)
            return endings[i].ending;
    return 0;
}

static bool row_fits(const struct row *r, const struct advice_case *c, const char *text, size_t len,
                     char name[ADVICE_NAME_MAX + 1])
{
    const unsigned endings = r->endings ? r->endings : FAILED;

    if (!(endings & ending_of(c->status)) || (c->facts & r->facts) != r->facts ||
        (c->facts & r->without))
        return false;
    for (size_t i = 0; i < PATTERNS_MAX && r->patterns[i]; i++)
        if (matches(r->patterns[i], text, len, r->name, name))
            return true;
    return false;
}

/* ---- sentences ---- */

static void add_word(const struct advice_case *c, const char *word, size_t len, const char *name,
                     struct buf *out)
{
    const struct {
        const char *word;
        uint64_t size;
    } sizes[] = {{"memory", c->bounds->memory}, {"tmp", c->bounds->tmp}, {"file", c->bounds->file}};

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (strncmp(word, sizes[i].word, len) == 0)
            words_binary_size(out, sizes[i].size);
    if (strncmp(word, "name", len) == 0)
        buf_add_str(out, name);
    else if (strncmp(word, "extra", len) == 0)
        buf_add_str(out, extra_of(name));
    else if (strncmp(word, "tool", len) == 0)
        buf_add_str(out, c->prefix);
    else if (strncmp(word, "pids", len) == 0)
        buf_addf(out, "%" PRIu64, c->bounds->pids);
}

static void add_sentence(const struct advice_case *c, const char *sentence, const char *name,
                         struct buf *out)
{
    for (const char *at = sentence; *at;) {
        size_t plain = strcspn(at, "{"), len;

        buf_add(out, at, plain);
        at += plain;
        if (!*at)
            break;
        len = strcspn(++at, "}");
        add_word(c, at, len, name, out);
        at += len + 1;
    }
}

bool advice_find(const struct advice_case *c, struct buf *out)
{
    const size_t skip = c->len > LOOKED_AT ? c->len - LOOKED_AT : 0;
    char name[ADVICE_NAME_MAX + 1];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!row_fits(&rows[i], c, c->text + skip, c->len - skip, name))
            continue;
        add_sentence(c, rows[i].sentence, name, out);
        return true;
    }
    return false;
}
