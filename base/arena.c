#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

struct sbx_arena_chunk {
    struct sbx_arena_chunk *older;
    size_t cap;  /* bytes of data */
    size_t used; /* of them */
    alignas(max_align_t) char data[];
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

/* n bytes on a boundary of `align` (a power of two), not initialised. */
static enum sbx_status take(struct sbx_arena *arena, size_t n, size_t align, char **ret,
                            struct sbx_error *err)
{
    struct sbx_arena_chunk *chunk = arena->chunks;
    size_t at = 0;

    if (n > arena->max - arena->used)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "limit of memory reached: %zu bytes", arena->max);
    if (chunk)
        at = (chunk->used + align - 1) & ~(align - 1);
    if (!chunk || at > chunk->cap || n > chunk->cap - at) {
        chunk = chunk_new(arena, n);
        at = 0;
    }
    if (!chunk)
        return sbx_err_nomem(err);
    chunk->used = at + n;
    arena->used += n;
    *ret = chunk->data + at;
    return SBX_OK;
}

enum sbx_status sbx_arena_alloc(struct sbx_arena *arena, size_t n, void **ret,
                                struct sbx_error *err)
{
    char *p = NULL;
    enum sbx_status st = take(arena, n, alignof(max_align_t), &p, err);

    if (st)
        return st;
    memset(p, 0, n);
    *ret = p;
    return SBX_OK;
}

enum sbx_status sbx_arena_copy(struct sbx_arena *arena, const char *bytes, size_t n,
                               const char **ret, struct sbx_error *err)
{
    enum sbx_status st;
    char *p = NULL;

    if (n == SIZE_MAX)
        return sbx_err_nomem(err);
    st = take(arena, n + 1, 1, &p, err);
    if (st)
        return st;
    if (n > 0)
        memcpy(p, bytes, n);
    p[n] = '\0';
    *ret = p;
    return SBX_OK;
}

void sbx_arena_drop_copy(struct sbx_arena *arena, const char *copy, size_t n)
{
    struct sbx_arena_chunk *chunk = arena->chunks;

    if (!chunk || n >= chunk->used || copy != chunk->data + (chunk->used - n - 1))
        return;
    chunk->used -= n + 1;
    arena->used -= n + 1;
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
