/* Texts that are files of the source tree, inside the program. */
#pragma once

/* The bytes of a file, with a NUL behind them, as the object symbol. path: as the assembler finds
 * it. */
#define EMBED(symbol, path)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global " #symbol "\n" #symbol ": .incbin \"" path "\"\n"                             \
            ".byte 0\n"                                                                            \
            ".popsection\n")
