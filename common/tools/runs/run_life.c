#include "config.h"

#include "common/tools/runs/run_life.h"

#include "common/base/clock.h"
#include "common/base/mem.h"

#include <inttypes.h>

#define LOOK_MS    500  /* between two looks whether something has to be said */
#define SILENCE_MS 3000 /* of it before a sign of life */
#define IDLE_MS    5000 /* between two looks where no progress is wanted */

static double seconds_of(const struct run_life *l)
{
    return (double)(clock_mono_ms() - l->began_ms) / 1000.0;
}

/* The container's own start and the queue do not count against the limit. */
static void tell_sign(const struct run_life *l)
{
    double seconds = seconds_of(l);
    double limit = (double)l->limit_ms / 1000.0;
    AUTO_FREE char *text = NULL;

    if (l->queued)
        text = mem_printf("%s has been waiting or running for %.0f s", l->subject, seconds);
    else if (limit > 0)
        text = mem_printf("%s has been running for %.0f of at most %g s", l->subject, seconds,
                          limit);
    else
        text = mem_printf("%s is running; waited for %.0f s", l->subject, seconds);
    mcp_progress(l->call->channel, seconds, !l->queued && seconds <= limit ? limit : 0, text);
}

static void tick(void *ctx)
{
    const struct run_life *l = ctx;

    if (!mcp_progress_wanted(l->call->channel))
        mcp_keep_alive(l->call->channel);
    else if (mcp_silence_ms(l->call->channel) >= SILENCE_MS)
        tell_sign(l);
}

static void tell_piece(void *ctx, const struct broker_live *piece)
{
    const struct run_life *l = ctx;
    json_auto_t *text = NULL;

    if (piece->kind == BROKER_LIVE_SKIPPED) {
        AUTO_FREE char *note = mem_printf("(%" PRIu64 " bytes of output came too fast to be shown "
                                          "here)",
                                          piece->skipped);
        text = json_string(note);
    } else {
        text = json_stringn(piece->text.data, piece->text.len);
    }
    mcp_progress_text(l->call->channel, seconds_of(l), text);
}

static void tell_queue(void *ctx, uint64_t position)
{
    struct run_life *l = ctx;
    AUTO_FREE char *note = mem_printf("%s waits for a free place: number %" PRIu64 " in the queue",
                                      l->subject, position);
    json_auto_t *text = json_string(note);

    l->queued = true;
    mcp_progress_text(l->call->channel, seconds_of(l), text);
}

void run_life_begin(struct run_life *l, const struct mcp_tool_call *call, const char *subject,
                    uint64_t limit_ms, struct broker_client *client,
                    struct broker_callbacks *callbacks)
{
    bool wanted = mcp_progress_wanted(call->channel);

    *l = (struct run_life){
        .call = call, .subject = subject, .limit_ms = limit_ms, .began_ms = clock_mono_ms()};
    client->tick = tick;
    client->tick_ctx = l;
    client->tick_ms = wanted ? LOOK_MS : IDLE_MS;
    if (wanted)
        *callbacks = (struct broker_callbacks){
            .live = tell_piece, .queued = tell_queue, .ctx = l, .busy = callbacks->busy};
}
