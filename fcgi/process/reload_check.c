#include "config.h"

#include "fcgi/process/reload_check.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMPLAINT_MAX 4096
#define CHECK_S       10

static void run_check(const char *program, const char *config_path, const sigset_t *mask,
                      int stderr_fd)
{
    int null = open("/dev/null", O_WRONLY);

    sigprocmask(SIG_SETMASK, mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(CHECK_S);
    if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(stderr_fd, STDERR_FILENO) < 0)
        _exit(1);
    execl(program, program, "check", config_path ? "--config" : (char *)NULL, config_path,
          (char *)NULL);
    fprintf(stderr, "cannot execute %s: %s\n", program, strerror(errno));
    _exit(1);
}

/* The first line that is more than a note. */
static void log_complaint(const char *text)
{
    static const char prefix[] = "sandcgi: ", note[] = "sandcgi: note: ";

    while (strncmp(text, note, strlen(note)) == 0 && strchr(text, '\n'))
        text = strchr(text, '\n') + 1;
    if (strncmp(text, prefix, strlen(prefix)) == 0)
        text += strlen(prefix);
    log_error("settings not reloaded: %.*s", *text ? (int)strcspn(text, "\n") : -1,
              *text ? text : "no answer");
}

bool reload_check(const char *program, const char *config_path, const sigset_t *mask)
{
    AUTO_BUF struct buf complaint = BUF_INIT(COMPLAINT_MAX);
    struct err none = ERR_INIT;
    int ends[2], status = -1;

    if (pipe2(ends, O_CLOEXEC) < 0) {
        log_error("settings not reloaded: pipe: %s", strerror(errno));
        return false;
    }
    pid_t pid = fork();
    if (pid == 0)
        run_check(program, config_path, mask, ends[1]);
    close(ends[1]);
    fdio_read_to_end(ends[0], &complaint, &none);
    close(ends[0]);
    if (pid > 0)
        waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    log_complaint(buf_str(&complaint));
    return false;
}
