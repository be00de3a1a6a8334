/*
 * The container of a persistent sandbox, in this process's memory, for tests of what is above
 * struct engine, made by fake_container.c. Its commands are real processes of
 * this machine, in the sandbox's directory; its interpreter knows these cells: print TEXT   print a
 * line            exit N   ends with that code die          the interpreter ends    hang nothing,
 * until it is killed fade         done, and then the interpreter ends babble       nonsense on the
 * control channel, and no end       babble on    done, and then the same
 */
#pragma once

#include <stdbool.h>

/* Shared by the processes that are forked after fake_psandbox_reset. */
struct fake_psandbox {
    int start_ms;   /* how long a start takes */
    bool failing;   /* starts fail */
    bool no_pause;  /* pausing fails */
    int listing_ms; /* how long a listing of many files takes besides */
    int starts, alive, commands, pauses;
    int listings; /* begun while listing_ms was set */
    bool paused;
    bool network;
    char image[64]; /* of the last start */
};

extern struct fake_psandbox *fake_psandbox;

/* Link the test with -Wl,--wrap=snapshot_take for listing_ms. */
void fake_psandbox_reset(void);
/* As if an operator removed the container. */
void fake_psandbox_remove(void);
