#include "config.h"

#include "fcgi/commands.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "fcgi/oauth/server/once.h"
#include "fcgi/oauth/server/passphrase.h"
#include "fcgi/oauth/server/store.h"
#include "fcgi/process/resources.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define EXIT_WORDS 2

static const char usage[] =
    "usage: sandcgi oauth passphrase|code [--config FILE]\n"
    "\n"
    "passphrase sets the operator's passphrase, which allows clients access "
    "(SANDCGI_OAUTH=builtin). It is "
    "read "
    "from\n"
    "the terminal, twice and unseen, or from standard input. Its Argon2id hash alone is kept. It "
    "counts\n"
    "at once; what was allowed before stays: see sandcgi token list.\n"
    "\n"
    "code prints a code that the page takes once, within 10 minutes, in the place of the "
    "passphrase,\n"
    "also when there were too many wrong ones.\n"
    "\n"
    "  --config FILE  the settings (default: $SANDCGI_CONFIG, or " SETTINGS_FILE ")\n"
    "\n"
    "Exit status: 1: nothing has changed. 2: wrong words.\n";

/* One line, without its end; the rest stays unread. */
static int read_line(char out[PASSPHRASE_MAX + 2], struct err *e)
{
    size_t n = 0;
    char c;

    for (ssize_t got; (got = read(STDIN_FILENO, &c, 1)) != 0 && c != '\n';) {
        if (got < 0)
            return err_errno(e, "standard input");
        if (n == PASSPHRASE_MAX + 1)
            return err_set(e, ERR_INVALID, "the passphrase is over %d characters", PASSPHRASE_MAX);
        out[n++] = c;
    }
    if (n > 0 && out[n - 1] == '\r')
        n--;
    out[n] = '\0';
    return 0;
}

static int ask(const char *prompt, char out[PASSPHRASE_MAX + 2], struct err *e)
{
    struct termios shown, unseen;

    if (tcgetattr(STDIN_FILENO, &shown) < 0)
        return read_line(out, e);
    unseen = shown;
    unseen.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &unseen);
    fputs(prompt, stderr);
    int rc = read_line(out, e);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
    fputc('\n', stderr);
    return rc;
}

static int read_passphrase(char out[PASSPHRASE_MAX + 2], struct err *e)
{
    char again[PASSPHRASE_MAX + 2];

    if (ask("Passphrase: ", out, e) < 0)
        return -1;
    if (!isatty(STDIN_FILENO))
        return 0;
    int rc = ask("Again: ", again, e);
    if (rc == 0 && !crypto_equal(out, strlen(out), again, strlen(again)))
        rc = err_set(e, ERR_INVALID, "the two are not the same");
    explicit_bzero(again, sizeof again);
    return rc;
}

static int set_passphrase(const struct audit_place *place, int folder, struct err *e)
{
    char text[PASSPHRASE_MAX + 2];

    int rc = read_passphrase(text, e);
    if (rc == 0)
        rc = passphrase_set(folder, text, e);
    explicit_bzero(text, sizeof text);
    if (rc == 0)
        audit_tell(place, AUDIT_OAUTH_PASSPHRASE, NULL, 0, "the operator's passphrase was set");
    if (rc == 0)
        fputs("sandcgi: the operator's passphrase was set\n", stderr);
    return rc;
}

static int print_code(const struct audit_place *place, int folder, struct err *e)
{
    AUTO_STORE struct store state = STORE_INIT;
    char code[ONCE_LEN + 1];

    if (store_begin(folder, &state, e) < 0)
        return -1;
    once_make(json_object_get(state.state, "once"), clock_unix_s(), code);
    if (store_save(&state, e) < 0)
        return -1;
    printf("%s\n", code);
    audit_tell(place, AUDIT_OAUTH_CODE, NULL, 0, "a code was made, which allows a client");
    return 0;
}

static int act_on(const struct settings *s, const char *act, struct err *e)
{
    const struct audit_place place = audit_place_of(s);
    struct account workers;

    if (account_of_workers(s->user, &workers, e) < 0)
        return -1;
    AUTO_FD int folder = store_folder_open(s, &workers, e);
    if (folder < 0)
        return -1;
    return strcmp(act, "code") == 0 ? print_code(&place, folder, e)
                                    : set_passphrase(&place, folder, e);
}

static int wrong_words(const char *problem)
{
    fprintf(stderr, "sandcgi oauth: %s; see sandcgi oauth --help\n", problem);
    return EXIT_WORDS;
}

int oauth_run(char *const *words)
{
    const char *config = settings_default_file(), *act = NULL;
    struct err e = ERR_INIT;
    struct settings settings;

    for (; *words; words++) {
        if (strcmp(*words, "--help") == 0 || strcmp(*words, "-h") == 0)
            return fputs(usage, stdout) < 0;
        if (strcmp(*words, "--config") == 0 && words[1])
            config = *++words;
        else if (!act)
            act = *words;
        else
            return wrong_words("there is a word too many");
    }
    if (!act || (strcmp(act, "passphrase") != 0 && strcmp(act, "code") != 0))
        return wrong_words("passphrase or code is expected");
    if (settings_load(&settings, config, &e) < 0) {
        fprintf(stderr, "sandcgi: %s\n", e.text);
        return 1;
    }
    int rc = act_on(&settings, act, &e);
    if (rc < 0)
        fprintf(stderr, "sandcgi: %s\n", e.text);
    settings_clear(&settings);
    return rc < 0;
}
