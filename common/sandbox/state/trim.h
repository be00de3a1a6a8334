/*
 * Removes what a run left above the bounds of its conversation (quota.h), so that the next call
 * works. Only what is new since the run began, or takes more than then, is touched: the largest
 * first, new files before older ones, and no more than necessary. An older file that has grown is
 * cut to the length it had; one that does not take more than before is left alone, whatever the
 * run did to it.
 */
#pragma once

#include "common/sandbox/snapshot.h"

/*
 * Lists the files after a run, as snapshot_take does. before is the listing before it; without
 * items it is the moment of the last look. When the sandbox takes too much by then, *over is the
 * reason and what was removed (ERR_LIMIT; else it is left alone), and *after the listing of the
 * rest. whole: all that is new goes then, since a part of it is of no use (an installation).
 */
int trim_after(const struct sandbox *sb, const struct snapshot *before, bool whole,
               struct snapshot *after, struct err *over, struct err *e);
