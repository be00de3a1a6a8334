/* How this program was put on the machine, which decides the commands that its sentences name. */
#pragma once

#include "common/base/remedy.h"

#include <stdbool.h>

/* For remedy_find_way: by the place of the program and what lies beside it. */
enum way way_find(void);

struct way_facts {
    bool has_start_sh; /* above the program's folder */
    bool in_image;     /* of our Dockerfile */
    bool installed;    /* "make install" or a package has put the scripts there */
    bool systemd;      /* runs */
    bool cluster;      /* an orchestrator has started the container */
};
enum way way_of(const struct way_facts *facts);

/* For remedy_find_way, of "sandcgi stdio" and of settings for it. */
enum way way_stdio(void);
