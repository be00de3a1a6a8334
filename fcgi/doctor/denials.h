/*
 * What SELinux or AppArmor has denied to the server, or to a web server: lines of the kernel's log
 * and of auditd's. Without them a denial is an "Permission denied" that no mode of a file explains.
 */
#pragma once

#include "fcgi/doctor/findings.h"
#include "fcgi/settings.h"

#include <stdbool.h>
#include <stdint.h>

struct denial {
    const char *module; /* "SELinux", "AppArmor" */
    char program[64];   /* the process's name; "": unknown */
    char what[64];      /* an operation, or permissions: "connect", "read open" */
    char target[256];   /* a path, or with SELinux perhaps its last part; "": unknown */
    char profile[128];  /* the rules that denied it: a profile, or a context */
    int64_t unix_s;
};

/* Is the line of a denial that took effect? What is too long for a member is cut. */
bool denial_read(const char *line, struct denial *out);

/* Adds the latest denial of this day that concerns the server, as wrong, or of a web server, as a
 * note; and that there is none where one of the two is at work. Only root can read the logs. */
void denials_look(const struct settings *s, struct findings *out);
