#include "config.h"

#include "fcgi/commands.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "fcgi/oauth/server/passphrase.h"
#include "fcgi/oauth/server/store.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define EXIT_WORDS 2

static const char usage[] =
    "usage: sandcgi oauth passphrase [--config FILE]\n"
    "\n"
    "Sets the operator's passphrase, which allows clients access (SANDCGI_OAUTH=builtin). It is "
    "read "
    "from\n"
    "the terminal, twice and unseen, or from standard input. Its Argon2id hash alone is kept. It "
    "counts\n"
    "at once; what was allowed before stays: see sandcgi token list.\n"
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

static int set_passphrase(const struct settings *s, struct err *e)
{
    static const struct log_field field = {.name = "audit", .text = "oauth-passphrase"};
    char text[PASSPHRASE_MAX + 2];
    struct account workers;

    if (account_of_workers(s->user, &workers, e) < 0)
        return -1;
    AUTO_FD int folder = store_folder_open(s, &workers, e);
    if (folder < 0)
        return -1;
    int rc = read_passphrase(text, e);
    if (rc == 0)
        rc = passphrase_set(folder, text, e);
    explicit_bzero(text, sizeof text);
    if (rc == 0)
        log_with(LOG_LEVEL_INFO, &field, 1, "the operator's passphrase was set");
    return rc;
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
    if (!act || strcmp(act, "passphrase") != 0)
        return wrong_words("passphrase is expected");
    if (settings_load(&settings, config, &e) < 0) {
        fprintf(stderr, "sandcgi: %s\n", e.text);
        return 1;
    }
    log_follow(&settings);
    log_set_role("oauth");
    int rc = set_passphrase(&settings, &e);
    if (rc < 0)
        fprintf(stderr, "sandcgi: %s\n", e.text);
    settings_clear(&settings);
    return rc < 0;
}
