/* Memory for many small texts that die together. What it hands out never moves. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

struct sbx_arena_chunk;

struct sbx_arena {
    struct sbx_arena_chunk *chunks; /* owned, newest first */
    size_t used;                    /* bytes handed out */
    size_t max;                     /* at most; more is SBX_E_LIMIT */
};

#define SBX_ARENA_INIT(maximum) ((struct sbx_arena){.max = (maximum)})

/* A copy of bytes[0..n) and a NUL, not aligned. */
SBX_MUST_CHECK enum sbx_status sbx_arena_copy(struct sbx_arena *arena, const char *bytes, size_t n,
                                              const char **ret, struct sbx_error *err);
void sbx_arena_done(struct sbx_arena *arena);

#endif
