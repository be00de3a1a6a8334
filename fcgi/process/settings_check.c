#include "config.h"

#include "fcgi/process/settings_check.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "fcgi/doctor/check.h"
#include "fcgi/process/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX (64u * 1024)
#define CHECK_S   10
#define PREFIX    "sandcgi: "
#define NOTE      "note: "

int settings_check_print(const struct settings *s, const char *config_path)
{
    struct findings found = {0};

    for (const char *line = s->notes; *line; line += strcspn(line, "\n") + 1)
        fprintf(stderr, PREFIX NOTE "%.*s\n", (int)strcspn(line, "\n"), line);
    check_settings(s, config_path, &found);
    for (size_t i = 0; i < found.n; i++)
        fprintf(stderr, PREFIX "%s%s%s%s\n", found.items[i].state == FINDING_NOTE ? NOTE : "",
                found.items[i].text, *found.items[i].mend ? ": " : "", found.items[i].mend);
    bool wrong = findings_count(&found, FINDING_WRONG) > 0;
    findings_clear(&found);
    if (!wrong)
        printf("ok: %s\n", config_path ? config_path : "the settings of the environment");
    fflush(NULL);
    return wrong;
}

int settings_check_print_file(const char *config_path)
{
    struct err e = ERR_INIT;
    struct settings settings;

    if (settings_load(&settings, config_path, &e) < 0) {
        fprintf(stderr, PREFIX "%s\n", e.text);
        return 1;
    }
    int result = settings_check_print(&settings, config_path);
    settings_clear(&settings);
    return result;
}

/* ---- in a child ---- */

static void child_main(const char *program, const struct settings *s, const char *config_path,
                       const sigset_t *mask, int stderr_fd)
{
    int null = open("/dev/null", O_WRONLY);

    sigprocmask(SIG_SETMASK, mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(CHECK_S);
    if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(stderr_fd, STDERR_FILENO) < 0)
        _exit(1);
    if (!program)
        _exit(settings_check_print(s, config_path));
    execl(program, program, "check", config_path ? "--config" : (char *)NULL, config_path,
          (char *)NULL);
    fprintf(stderr, "cannot execute %s: %s\n", program, strerror(errno));
    _exit(1);
}

/* The notes among the lines; *fault: the first line that is none, or NULL. */
static void sort_lines(char *text, struct buf *notes, const char **fault)
{
    *fault = NULL;
    for (char *save, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        const bool ours = strncmp(line, PREFIX, strlen(PREFIX)) == 0;
        line += ours ? strlen(PREFIX) : 0;
        if (ours && strncmp(line, NOTE, strlen(NOTE)) == 0)
            buf_addf(notes, "%s\n", line + strlen(NOTE));
        else if (!*fault)
            *fault = line;
    }
}

int settings_check_ask(const char *program, const struct settings *s, const char *config_path,
                       const sigset_t *mask, struct buf *notes, struct err *e)
{
    AUTO_BUF struct buf words = BUF_INIT(WORDS_MAX);
    struct err none = ERR_INIT;
    const char *fault;
    int ends[2], status = -1;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(e, "pipe");
    fflush(NULL); /* else the child would write it, too */
    pid_t pid = fork();
    if (pid == 0)
        child_main(program, s, config_path, mask, ends[1]);
    if (pid < 0)
        err_errno(e, "the settings cannot be checked: fork");
    close(ends[1]);
    fdio_read_to_end(ends[0], &words, &none);
    close(ends[0]);
    if (pid < 0)
        return -1;
    waitpid(pid, &status, 0);
    AUTO_FREE char *text = buf_take(&words);
    sort_lines(text, notes, &fault);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_set(e, ERR_INVALID, "%s", fault ? fault : "the check of the settings does not end");
}

void settings_check_tell(const char *notes, int fd)
{
    for (const char *line = notes; *line; line += strcspn(line, "\n") + 1) {
        AUTO_FREE char *text = mem_strndup(line, strcspn(line, "\n"));
        log_warn("%s", text);
        control_note(fd, text);
    }
}
