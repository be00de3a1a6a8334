/*
 * libnss_sandbox.so.2: a name for the user of a container. Each sandbox has a user id of its own,
 * which no file of an image can list: glibc asks this module (nsswitch.conf), which answers for the
 * ids of the process that asks.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <grp.h>
#include <nss.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

static char name[] = "sandbox", password[] = "x", gecos[] = "", home[] = "/data",
            shell[] = "/bin/bash";
static char *members[] = {NULL};

enum nss_status _nss_sandbox_getpwuid_r(uid_t uid, struct passwd *out, char *buffer, size_t size,
                                        int *error);
enum nss_status _nss_sandbox_getpwnam_r(const char *asked, struct passwd *out, char *buffer,
                                        size_t size, int *error);
enum nss_status _nss_sandbox_getgrgid_r(gid_t gid, struct group *out, char *buffer, size_t size,
                                        int *error);
enum nss_status _nss_sandbox_getgrnam_r(const char *asked, struct group *out, char *buffer,
                                        size_t size, int *error);

/* The texts are static: they need no room in the caller's buffer. */
enum nss_status _nss_sandbox_getpwuid_r(uid_t uid, struct passwd *out, char *buffer, size_t size,
                                        int *error)
{
    (void)buffer;
    (void)size;
    (void)error;
    if (uid == 0 || uid != getuid())
        return NSS_STATUS_NOTFOUND;
    *out = (struct passwd){.pw_name = name,
                           .pw_passwd = password,
                           .pw_uid = uid,
                           .pw_gid = getgid(),
                           .pw_gecos = gecos,
                           .pw_dir = home,
                           .pw_shell = shell};
    return NSS_STATUS_SUCCESS;
}

enum nss_status _nss_sandbox_getpwnam_r(const char *asked, struct passwd *out, char *buffer,
                                        size_t size, int *error)
{
    if (strcmp(asked, name) != 0)
        return NSS_STATUS_NOTFOUND;
    return _nss_sandbox_getpwuid_r(getuid(), out, buffer, size, error);
}

enum nss_status _nss_sandbox_getgrgid_r(gid_t gid, struct group *out, char *buffer, size_t size,
                                        int *error)
{
    (void)buffer;
    (void)size;
    (void)error;
    if (gid == 0 || gid != getgid())
        return NSS_STATUS_NOTFOUND;
    *out = (struct group){.gr_name = name, .gr_passwd = password, .gr_gid = gid, .gr_mem = members};
    return NSS_STATUS_SUCCESS;
}

enum nss_status _nss_sandbox_getgrnam_r(const char *asked, struct group *out, char *buffer,
                                        size_t size, int *error)
{
    if (strcmp(asked, name) != 0)
        return NSS_STATUS_NOTFOUND;
    return _nss_sandbox_getgrgid_r(getgid(), out, buffer, size, error);
}
