#include "config.h"

#include "common/broker/slots.h"

#include <sys/mman.h>
#include <unistd.h>

static size_t slots_size(size_t n)
{
    return sizeof(struct slots) + n * sizeof(struct slot);
}

struct slots *slots_new(size_t n, struct err *e)
{
    struct slots *s = mmap(NULL, slots_size(n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                           -1, 0);
    if (s == MAP_FAILED) {
        err_errno(e, "no shared memory for %zu runs", n);
        return NULL;
    }
    s->n = n;
    return s;
}

void slots_free(struct slots *s)
{
    if (s)
        munmap(s, slots_size(s->n));
}

struct slot *slots_take(struct slots *s)
{
    for (size_t i = 0; i < s->n; i++) {
        pid_t none = 0;
        if (atomic_compare_exchange_strong(&s->items[i].pid, &none, getpid())) {
            s->items[i].run_id[0] = '\0';
            return &s->items[i];
        }
    }
    return NULL;
}

void slots_give_back(struct slot *slot)
{
    slot->run_id[0] = '\0';
    atomic_store(&slot->pid, 0);
}

struct slot *slots_held_by(struct slots *s, pid_t pid)
{
    for (size_t i = 0; i < s->n; i++)
        if (atomic_load(&s->items[i].pid) == pid)
            return &s->items[i];
    return NULL;
}
