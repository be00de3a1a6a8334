#include "config.h"

#include "fcgi/process/account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

int account_of_workers(const char *user, struct account *out, struct err *e)
{
    *out = (struct account){.uid = geteuid(), .gid = getegid()};
    if (geteuid() != 0)
        return 0;
    if (!*user)
        return err_set(e, ERR_INVALID,
                       "started as root: SANDCGI_USER must name the account of the workers");
    errno = 0;
    const struct passwd *pw = getpwnam(user);
    if (!pw)
        return err_set(e, ERR_INVALID, "SANDCGI_USER=%s: there is no such account", user);
    if (pw->pw_uid == 0)
        return err_set(e, ERR_INVALID, "SANDCGI_USER must not be root");
    *out = (struct account){.uid = pw->pw_uid, .gid = pw->pw_gid};
    return 0;
}

int account_group(const char *name, gid_t *out, struct err *e)
{
    *out = (gid_t)-1;
    if (!*name)
        return 0;
    const struct group *gr = getgrnam(name);
    if (!gr)
        return err_set(e, ERR_INVALID, "SANDCGI_LISTEN_GROUP=%s: there is no such group", name);
    *out = gr->gr_gid;
    return 0;
}

int account_become(const struct account *account, struct err *e)
{
    if (geteuid() == 0) {
        if (setgroups(0, NULL) < 0 || setgid(account->gid) < 0 || setuid(account->uid) < 0)
            return err_errno(e, "giving up root");
        if (setuid(0) == 0)
            return err_set(e, ERR_INTERNAL, "root could be taken back after giving it up");
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_errno(e, "no_new_privs");
    /* setuid has cleared the parent death signal: without it a worker would outlive its master. */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
        return err_errno(e, "parent death signal");
    return 0;
}
