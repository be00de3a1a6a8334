#include "config.h"

#include "common/sandbox/helper_files.h"

#include <stddef.h>

/* The bytes of a file between two symbols. Paths are those of the build folder. */
#define EMBED(symbol, path)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global helper_" #symbol ", helper_" #symbol "_end\n"                                 \
            "helper_" #symbol ": .incbin \"" path "\"\n"                                           \
            "helper_" #symbol "_end: .byte 0\n"                                                    \
            ".popsection\n");                                                                      \
    extern const char helper_##symbol[], helper_##symbol##_end[]

EMBED(entry, "runners/common/entry");
EMBED(python, HELPERS_SOURCES "/runners/python/session.py");
EMBED(typescript, HELPERS_SOURCES "/runners/typescript/session.mjs");

const struct helper_file helper_files[] = {
    {"entry", helper_entry, helper_entry_end},
    {"session.py", helper_python, helper_python_end},
    {"session.mjs", helper_typescript, helper_typescript_end},
    {NULL, NULL, NULL},
};
