/*
 * The shape of every container that we create: one place, held against a golden file by the tests.
 * What a caller can choose is in struct engine_spec; nothing of the hardening is.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/engine/engine.h"

#include <jansson.h>
#include <stdbool.h>

/* What follows is random: the engine's name server tells the names to other containers. A label has
 * the run's id. */
#define CONTAINER_NAME_PREFIX "sandcgi-"
#define CONTAINER_RUN_ID_MAX  64

/* Where the container of a persistent sandbox finds the helpers. */
#define CONTAINER_HELPERS   "/sandbox"
#define CONTAINER_ALIAS_MAX 64

#define LABEL_MANAGED  "sandbox.managed"
#define LABEL_INSTANCE "sandbox.instance"
#define LABEL_RUN      "sandbox.run"
#define LABEL_DEADLINE "sandbox.deadline"

/* What the engine calls the network of a tier, and the bridge's name before its random part, which
 * nginx/setup/network.sh knows; "none" and NULL for NETWORK_NONE. */
extern const struct container_network {
    const char *name, *bridge;
} container_networks[];

/* Appends the JSON body of POST /containers/create to an engine of which facts are true.
 * ERR_INVALID when the spec lacks or breaks something. */
int container_body(const struct engine_spec *spec, const struct engine_facts *facts,
                   struct buf *out, struct err *e);

/* Sets CpuPeriod and CpuQuota; cpu_milli 0: neither. */
void container_add_cpu(json_t *to, uint64_t cpu_milli);

/* Can the sandbox be mounted there, too: a plain absolute path that is no other mount's. */
bool container_alias_ok(const char *alias);
/* Is it what the engine calls a container: 12 to 64 lower-case hex digits. */
bool container_id_ok(const char *id);
