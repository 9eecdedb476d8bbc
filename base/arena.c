#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

struct sbx_arena_chunk {
    struct sbx_arena_chunk *older;
    size_t cap;  /* bytes of data */
    size_t used; /* of them */
    char data[];
};

static struct sbx_arena_chunk *chunk_new(struct sbx_arena *arena, size_t n)
{
    size_t cap = SBX_ARENA_CHUNK_FIRST;
    struct sbx_arena_chunk *chunk;

    if (arena->chunks)
        cap = arena->chunks->cap < SBX_ARENA_CHUNK_MOST / 2 ? arena->chunks->cap * 2
                                                            : SBX_ARENA_CHUNK_MOST;
    cap -= sizeof(*chunk);
    if (cap < n)
        cap = n;
    if (cap > SIZE_MAX - sizeof(*chunk))
        return NULL;
    chunk = malloc(sizeof(*chunk) + cap);
    if (!chunk)
        return NULL;
    *chunk = (struct sbx_arena_chunk){.older = arena->chunks, .cap = cap};
    arena->chunks = chunk;
    return chunk;
}

/* n bytes, not aligned and not initialised. */
static enum sbx_status take(struct sbx_arena *arena, size_t n, char **ret, struct sbx_error *err)
{
    struct sbx_arena_chunk *chunk = arena->chunks;

    if (n > arena->max - arena->used)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "limit of memory reached: %zu bytes", arena->max);
    if (!chunk || n > chunk->cap - chunk->used)
        chunk = chunk_new(arena, n);
    if (!chunk)
        return sbx_err_nomem(err);
    *ret = chunk->data + chunk->used;
    chunk->used += n;
    arena->used += n;
    return SBX_OK;
}

enum sbx_status sbx_arena_copy(struct sbx_arena *arena, const char *bytes, size_t n,
                               const char **ret, struct sbx_error *err)
{
    enum sbx_status st;
    char *p = NULL;

    if (n == SIZE_MAX)
        return sbx_err_nomem(err);
    st = take(arena, n + 1, &p, err);
    if (st)
        return st;
    if (n > 0)
        memcpy(p, bytes, n);
    p[n] = '\0';
    *ret = p;
    return SBX_OK;
}

void sbx_arena_done(struct sbx_arena *arena)
{
    while (arena->chunks) {
        struct sbx_arena_chunk *older = arena->chunks->older;

        free(arena->chunks);
        arena->chunks = older;
    }
    arena->used = 0;
}
