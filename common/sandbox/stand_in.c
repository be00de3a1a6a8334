#include "config.h"

#include "common/sandbox/stand_in.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/node.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTE_MAX      4096 /* bytes */
#define NOTE_HEX      32   /* digits of a note's name */
#define RANDOM_HEX    8
#define GOING         ".going" /* at the end of the name of a note that is given up */
#define NOTE_NAME_MAX 64
#define HOME_MAX      64
#define CONNECT_MS    300

/* ---- notes ---- */

static int note_name(const char *tenant, const char *conversation, char out[NOTE_NAME_MAX],
                     struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(NOTE_MAX);
    uint8_t digest[CRYPTO_SHA256_LEN];

    buf_addf(&text, "%s:%s", tenant, conversation);
    if (crypto_sha256(text.data, text.len, digest, e) < 0)
        return -1;
    crypto_hex(digest, NOTE_HEX / 2, out);
    return 0;
}

static json_t *note_read(int dir, const char *name, struct stat *st)
{
    AUTO_BUF struct buf text = BUF_INIT(NOTE_MAX);
    struct err e = ERR_INIT;
    AUTO_FD int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0 || fstat(fd, st) < 0 || !S_ISREG(st->st_mode) || fdio_read_to_end(fd, &text, &e) < 0)
        return NULL;
    json_t *note = json_parse(buf_str(&text), text.len, 2, &e);
    if (json_get_string(note, "tenant") && json_get_string(note, "inside") &&
        json_get_string(note, "home"))
        return note;
    json_decref(note);
    return NULL;
}

/* Whole at once: others read without the lock. */
static int note_make(int dir, const char *name, const json_t *note, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(NOTE_MAX);
    char unfinished[NOTE_NAME_MAX];

    json_write(note, &text);
    snprintf(unfinished, sizeof unfinished, "%.*s.new", NOTE_HEX, name);
    AUTO_FD int fd = openat(dir, unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                            0600);
    if (fd < 0)
        return err_errno(e, "cannot make a note about a home that is away");
    if (fdio_write_all(fd, text.data, text.len, e) < 0)
        return err_wrap(e, "a note about a home that is away");
    if (renameat(dir, unfinished, dir, name) < 0)
        return err_errno(e, "cannot make a note about a home that is away");
    return 0;
}

/* Its name is free from now on; what it had is still to be removed. */
static int note_give_up(int dir, const char *name, char going[NOTE_NAME_MAX])
{
    char digits[RANDOM_HEX + 1];

    crypto_random_hex(RANDOM_HEX / 2, digits);
    snprintf(going, NOTE_NAME_MAX, "%.*s.%s" GOING, NOTE_HEX, name, digits);
    return renameat(dir, name, dir, going);
}

/* ---- a call ---- */

/* One call at a time, so that all of an absence have the same name. */
static int lock_notes(int sessions_fd, struct err *e)
{
    AUTO_FD int dir = openat(sessions_fd, STAND_IN_DIR,
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (dir < 0)
        return err_errno(e, "cannot open the folder of notes about homes that are away");
    while (flock(dir, LOCK_EX) < 0)
        if (errno != EINTR)
            return err_errno(e, "cannot lock the notes about homes that are away");
    return TAKE_FD(dir);
}

static json_t *note_new(const char *tenant, const char *conversation, const char *home)
{
    char digits[NODE_STAND_IN_HEX + 1], inside[SANDBOX_ID_MAX + 1];

    crypto_random_hex(NODE_STAND_IN_HEX / 2, digits);
    snprintf(inside, sizeof inside, NODE_STAND_IN "%s%s", digits, conversation);
    return json_pack("{s:s, s:s, s:s}", "tenant", tenant, "inside", inside, "home", home);
}

int stand_in_open(int sessions_fd, const char *tenant, const char *conversation, const char *home,
                  char inside[SANDBOX_ID_MAX + 1], struct err *e)
{
    char name[NOTE_NAME_MAX], going[NOTE_NAME_MAX];
    struct stat st;

    if (strlen(conversation) + strlen(NODE_STAND_IN) + NODE_STAND_IN_HEX > SANDBOX_ID_MAX ||
        strlen(home) > HOME_MAX)
        return err_set(e, ERR_LIMIT, "conversationId is too long for another machine to stand in");
    AUTO_FD int dir = lock_notes(sessions_fd, e);
    if (dir < 0 || note_name(tenant, conversation, name, e) < 0)
        return -1;
    json_auto_t *note = note_read(dir, name, &st);
    if (note && strcmp(json_get_string(note, "home"), home) != 0) {
        note_give_up(dir, name, going); /* that of another home, which may be back */
        json_decref(TAKE_PTR(note));
    }
    if (note) {
        utimensat(dir, name, NULL, AT_SYMLINK_NOFOLLOW);
    } else {
        note = note_new(tenant, conversation, home);
        if (note_make(dir, name, note, e) < 0)
            return -1;
    }
    snprintf(inside, SANDBOX_ID_MAX + 1, "%s", json_get_string(note, "inside"));
    return 0;
}

/* ---- the look ---- */

static bool connects(const char *home)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    const char *colon = strrchr(home, ':');
    char host[HOME_MAX + 1];
    struct addrinfo *found = NULL;
    int error = 0;
    socklen_t len = sizeof error;

    if (!colon || colon == home || strlen(home) > HOME_MAX)
        return false;
    bool brackets = home[0] == '[' && colon[-1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(colon - home) - 2 * brackets, home + brackets);
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
        return false;
    AUTO_FD int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool begun = fd >= 0 &&
                 (connect(fd, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS);
    freeaddrinfo(found);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return begun && poll(&p, 1, CONNECT_MS) == 1 &&
           getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
}

/* Each home is asked once in a look. */
static bool is_back(json_t *asked, const char *home)
{
    if (!json_object_get(asked, home))
        json_object_set_new(asked, home, json_boolean(connects(home)));
    return json_is_true(json_object_get(asked, home));
}

static bool ends_in(const char *name, const char *end)
{
    size_t len = strlen(name), n = strlen(end);

    return len >= n && strcmp(name + len - n, end) == 0;
}

size_t stand_ins_look(int sessions_fd,
                      bool (*remove)(void *ctx, const char *tenant, const char *inside), void *ctx)
{
    AUTO_DIR DIR *notes = beneath_open_dir(sessions_fd, STAND_IN_DIR);
    json_auto_t *asked = json_object();
    const struct dirent *entry;
    char going[NOTE_NAME_MAX];
    struct stat st;
    size_t left = 0;

    while (notes && (entry = readdir(notes))) {
        int dir = dirfd(notes);
        const char *name = entry->d_name;
        json_auto_t *note = note_read(dir, name, &st);

        if (!note)
            continue;
        bool is_going = ends_in(name, GOING);
        int64_t age = clock_unix_s() - st.st_mtime;
        if (!is_going && strlen(name) != NOTE_HEX)
            continue; /* one that is just being made */
        left++;
        if (!is_going && age <= STAND_IN_KEPT_S && !is_back(asked, json_get_string(note, "home")))
            continue;
        if (!is_going && note_give_up(dir, name, going) < 0)
            continue;
        if (remove(ctx, json_get_string(note, "tenant"), json_get_string(note, "inside"))) {
            unlinkat(dir, is_going ? name : going, 0);
            left--;
        }
    }
    return left;
}
