#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/jobs/job.h"
#include "common/protocol/client_files.h"
#include "common/records/run_result.h"
#include "common/rpc/json.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/links/link.h"
#include "common/sandbox/state/sizes.h"

#include <signal.h>
#include <string.h>

#define PACK_STALL_MS 60000   /* without progress of the reader */
#define PACK_TOTAL_MS 3600000 /* of one download */
#define LINK_TTL_S    3600    /* without SANDBOX_URL_TTL */
#define WHOLE         "files" /* the name of an archive of everything */

/* The folder of a request: "" or a valid name. */
static int read_folder(const struct job *job, const char **out, struct err *e)
{
    const json_t *folder = json_object_get(job->request, "folder");

    *out = json_string_value(folder);
    if (!*out)
        return err_set(e, ERR_INVALID, "folder is missing");
    return **out ? files_check_name("folder", *out, json_string_length(folder), e) : 0;
}

/* ---- packing ---- */

/* The subject of a link: "<sandbox's name>/<token>/<folder/><archive's name>.<format>". The token
 * keeps a worker from naming the sandbox of a conversation that it cannot name. */
static char *subject_new(const struct sandbox *sb, const char *folder, enum pack_format format)
{
    const char *slash = strrchr(folder, '/');
    AUTO_FREE char *place = sandbox_url_path(sb);

    return mem_printf("%s/%s%s%s.%s", place, folder, *folder ? "/" : "",
                      slash     ? slash + 1
                      : *folder ? folder
                                : WHOLE,
                      pack_format_name(format));
}

struct subject {
    char *folder; /* owned */
    enum pack_format format;
};

static int subject_parse(const char *subject, struct subject *out, struct err *e)
{
    const char *file = strrchr(subject, '/');
    const char *slash = strnlen(subject, SANDBOX_URL_PATH_LEN) == SANDBOX_URL_PATH_LEN
                            ? subject + SANDBOX_URL_PATH_LEN
                            : "";
    const char *dot = file ? strchr(file, '.') : NULL;

    while (dot && pack_format_parse(dot + 1, &out->format) < 0)
        dot = strchr(dot + 1, '.');
    if (!dot || *slash != '/')
        return err_set(e, ERR_NOT_FOUND, "the link does not name an archive");
    out->folder = file == slash ? mem_strdup("")
                                : mem_strndup(slash + 1, (size_t)(file - slash - 1));
    if (*out->folder && files_check_name("folder", out->folder, strlen(out->folder), e) < 0)
        return -1;
    return 0;
}

json_t *job_archive_link(struct job *job, struct err *e)
{
    const struct sandbox_root *root = job->world->root;
    const char *tenant, *conversation, *folder, *name = json_get_string(job->request, "format");
    int64_t expires = clock_unix_s() + (root->url_ttl_s ? root->url_ttl_s : LINK_TTL_S);
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    enum pack_format format;
    struct pack_sum sum;

    if (!name || pack_format_parse(name, &format) < 0)
        return job_fail(e, ERR_INVALID, "format must be tar.gz, zip or tar");
    if (sandbox_links_are_local(root))
        return job_fail(
            e, ERR_INVALID,
            "there is no web server to download an archive from (PUBLIC_BASE_URL=file:); "
            "the files are at their file: URLs");
    if (job_read_owner(job, &tenant, &conversation, e) < 0 || read_folder(job, &folder, e) < 0 ||
        sandbox_find(root, tenant, conversation, &sb, e) < 0 || pack_look(&sb, folder, &sum, e) < 0)
        return NULL;
    job_note_use(&sb, tenant, conversation);
    AUTO_FREE char *subject = subject_new(&sb, folder, format);
    AUTO_FREE char *url = link_url(&root->link_keys.now, root->base_url, LINK_ARCHIVE, subject,
                                   expires);
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "url", url, "name",
                     strrchr(subject, '/') + 1, "format", name, "files", (json_int_t)sum.files,
                     "bytes", (json_int_t)sum.bytes, "expiresAt", (json_int_t)expires);
}

/* The worker has checked the signature and the expiry. The process lasts as long as the download.
 */
json_t *job_pack(struct job *job, struct err *e)
{
    const char *text = json_get_string(job->request, "subject");
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    const struct pack_sink sink = {job->in_fd, PACK_STALL_MS, PACK_TOTAL_MS};
    struct subject s = {.folder = NULL};
    struct pack_sum sum;

    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if (!text || job->in_fd < 0)
        return job_fail(e, ERR_INVALID, "pack: the subject or the pipe is missing");
    int rc = subject_parse(text, &s, e);
    if (rc == 0)
        rc = sandbox_find_url_path(job->world->root, text, &sb, e);
    if (rc == 0)
        rc = pack_files(&sb, s.folder, s.format, &sink, &sum, e);
    free(s.folder);
    if (rc < 0)
        return NULL;
    return json_pack("{s:I, s:I}", "files", (json_int_t)sum.files, "bytes", (json_int_t)sum.bytes);
}

/* ---- unpacking ---- */

/* The descriptor of the archive: a file of the sandbox, or the one passed. */
static int open_archive(const struct job *job, const struct sandbox *sb, struct err *e)
{
    struct job_target t;
    struct stat st;

    if (!json_object_get(job->request, "name"))
        return job->in_fd >= 0 ? job->in_fd : err_set(e, ERR_INVALID, "the archive is missing");
    if (job_read_target(job, "name", "filename", &t, e) < 0)
        return -1;
    return files_open(sb, t.name, &st, e);
}

static void note(json_t *result, json_t *take_sentence)
{
    json_t *notices = json_object_get(result, "notices");

    if (!notices)
        json_object_set_new(result, "notices", notices = json_array());
    json_array_append_new(notices, take_sentence);
}

static void note_what_changed(const struct unpacked *u, json_t *result)
{
    if (u->repaired > 0)
        note(result, json_sprintf("%zu name%s in another encoding than UTF-8 repaired", u->repaired,
                                  u->repaired == 1 ? "" : "s"));
    if (u->left_out == 1)
        note(result, json_sprintf("left out: %s", u->first_left_out));
    else if (u->left_out > 1)
        note(result, json_sprintf("left out: %zu links and devices, the first: %s", u->left_out,
                                  u->first_left_out));
}

static json_t *unpacked_encode(const struct sandbox *sb, const struct unpacked *u)
{
    json_t *names = json_array();
    json_t *result = json_pack("{s:I, s:I, s:o}", "files", (json_int_t)u->files, "bytes",
                               (json_int_t)u->bytes, "names", names);

    for (size_t i = 0; i < u->files && i < BROKER_UNPACK_NAMES_MAX; i++)
        json_array_append_new(names, json_string(u->names[i]));
    retention_notice_owner(sb, result);
    note_what_changed(u, result);
    return result;
}

static int keep_room(void *job, uint64_t bytes, uint64_t there, struct err *e)
{
    return job_keep_room(job, bytes, there, e);
}

json_t *job_unpack(struct job *job, struct err *e)
{
    const struct sandbox_root *root = job->world->root;
    const char *tenant, *conversation;
    struct unpack_want want = {.replace = json_get_bool(job->request, "replace", 0) != 0,
                               .max_bytes = job->world->config->limits.upload_max,
                               .watch = {job_check_caller, job},
                               .keep_room = keep_room};
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    AUTO_UNPACKED struct unpacked u = {0};
    bool is_there = json_object_get(job->request, "name") != NULL;

    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if (job_read_owner(job, &tenant, &conversation, e) < 0 ||
        read_folder(job, &want.folder, e) < 0 ||
        (is_there ? sandbox_find : sandbox_open)(root, tenant, conversation, &sb, e) < 0)
        return NULL;
    sizes_count_others(&sb, tenant);
    int fd = open_archive(job, &sb, e);
    int rc = fd < 0 || job_take_room(job, &sb, tenant, 0, 0, e) < 0 ? -1
                                                                    : unpack(&sb, fd, &want, &u, e);
    if (rc == 0)
        job_land(job, u.bytes);
    if (is_there)
        auto_close_fd(&fd);
    job_note_use(&sb, tenant, conversation);
    return rc < 0 ? NULL : unpacked_encode(&sb, &u);
}
