#include "runners/common/psandbox.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int left[LEFT_MAX];
static int n_left;

static void drop(int i)
{
    close(left[i]);
    memmove(left + i, left + i + 1, (size_t)(--n_left - i) * sizeof(*left));
}

void left_add(int fd)
{
    if (n_left == LEFT_MAX)
        drop(0);
    left[n_left++] = fd;
}

int left_count(void)
{
    return n_left;
}

int left_fd(int i)
{
    return left[i];
}

void left_drain(void)
{
    static char waste[FRAME_MAX];

    for (int i = n_left - 1; i >= 0; i--) {
        ssize_t n = read(left[i], waste, sizeof(waste));

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            drop(i);
    }
}
