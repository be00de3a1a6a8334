#include "config.h"

#include "common/sandbox/kit_files.h"

#include <stddef.h>

/* The bytes of a file between two symbols. Paths are those of the build folder. */
#define EMBED(symbol, path)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global kit_" #symbol ", kit_" #symbol "_end\n"                                       \
            "kit_" #symbol ": .incbin \"" path "\"\n"                                              \
            "kit_" #symbol "_end: .byte 0\n"                                                       \
            ".popsection\n");                                                                      \
    extern const char kit_##symbol[], kit_##symbol##_end[]

EMBED(entry, "runners/common/entry");
EMBED(python, KIT_SOURCES "/runners/python/session.py");
EMBED(typescript, KIT_SOURCES "/runners/typescript/session.mjs");

const struct kit_file kit_files[] = {
    {"entry", kit_entry, kit_entry_end},
    {"session.py", kit_python, kit_python_end},
    {"session.mjs", kit_typescript, kit_typescript_end},
    {NULL, NULL, NULL},
};
