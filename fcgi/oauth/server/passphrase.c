#include "config.h"

#include "fcgi/oauth/server/passphrase.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/remedy.h"
#include "fcgi/oauth/server/store.h"

#include <argon2.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS     3
#define MEMORY_KIB 65536 /* the second choice of RFC 9106, 4, with one lane */
#define LANES      1
#define SALT_LEN   16
#define HASH_LEN   32
#define TEXT_MAX   256
#define DIFFERENT  5 /* characters at least */

int passphrase_need(const struct settings *s, int folder_fd, struct err *e)
{
    if (!s->access.builtin ||
        (folder_fd >= 0 && faccessat(folder_fd, STORE_PASSPHRASE, F_OK, 0) == 0))
        return 0;
    return err_set(e, ERR_INVALID,
                   "SANDCGI_OAUTH=builtin needs the operator's passphrase; set it with: %s",
                   remedy(REMEDY_PASSPHRASE));
}

static size_t count_different(const char *text)
{
    bool seen[256] = {false};
    size_t n = 0;

    for (const char *c = text; *c; c++) {
        n += !seen[(unsigned char)*c];
        seen[(unsigned char)*c] = true;
    }
    return n;
}

int passphrase_set(int folder_fd, const char *text, struct err *e)
{
    AUTO_FD int lock = -1;
    char salt[2 * SALT_LEN + 1], encoded[TEXT_MAX];

    if (strlen(text) < PASSPHRASE_MIN || strlen(text) > PASSPHRASE_MAX)
        return err_set(e, ERR_INVALID, "the passphrase must have %d to %d characters",
                       PASSPHRASE_MIN, PASSPHRASE_MAX);
    if (count_different(text) < DIFFERENT)
        return err_set(e, ERR_INVALID, "the passphrase must have %d different characters",
                       DIFFERENT);
    crypto_random_hex(SALT_LEN, salt);
    int rc = argon2id_hash_encoded(ROUNDS, MEMORY_KIB, LANES, text, strlen(text), salt,
                                   2 * SALT_LEN, HASH_LEN, encoded, sizeof encoded);
    if (rc != ARGON2_OK)
        return err_set(e, ERR_INTERNAL, "the passphrase could not be hashed: %s",
                       argon2_error_message(rc));
    if ((lock = store_lock(folder_fd, e)) < 0)
        return -1;
    return store_write(folder_fd, STORE_PASSPHRASE, encoded, strlen(encoded), e);
}

int passphrase_check(int folder_fd, const char *text, bool *out_right, struct err *e)
{
    AUTO_BUF struct buf encoded = BUF_INIT(TEXT_MAX);

    *out_right = false;
    if (store_read(folder_fd, STORE_PASSPHRASE, &encoded, e) < 0)
        return -1;
    if (strlen(text) > PASSPHRASE_MAX)
        return 0;
    int rc = argon2id_verify(buf_str(&encoded), text, strlen(text));
    if (rc != ARGON2_OK && rc != ARGON2_VERIFY_MISMATCH)
        return err_set(e, ERR_INTERNAL, STORE_FOLDER "/" STORE_PASSPHRASE ": %s",
                       argon2_error_message(rc));
    *out_right = rc == ARGON2_OK;
    return 0;
}
