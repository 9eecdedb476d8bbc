/* In come names of a host directory, which other users and earlier passes have chosen: any bytes
 * but NUL and slash. The table is keyed-hashed, and keeps two spellings for a key however many
 * there are, so that nobody can make it slow. Out goes whether a name has another one there. */
#include "fsutil/dirindex.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "fsutil/dir.h"
#include "preflight/fold.h"
#include "preflight/path.h"

#define FIRST_SLOTS 64u

/* Two spellings are enough: whatever name is asked for, one of them is another. */
struct entry {
    uint64_t hash;
    const char *key; /* in the arena, not terminated */
    const char *spelling[2];
    uint32_t key_len;
};

struct sbx_fs_index {
    struct sbx_arena arena;
    struct sbx_hash_key hash_key;
    struct sbx_buf key;    /* of the name at hand */
    struct entry *entries; /* owned */
    size_t n, cap;
    uint32_t *slots; /* owned: index of an entry + 1, 0 if free; n_slots is a power of two */
    size_t n_slots;
    uint64_t read_at;
};

void sbx_fs_index_free(struct sbx_fs_index *index)
{
    if (!index)
        return;
    sbx_arena_done(&index->arena);
    sbx_buf_done(&index->key);
    free(index->entries);
    free(index->slots);
    free(index);
}

/* The slot of the key, or the free one where it belongs. */
static size_t find(const struct sbx_fs_index *index, uint64_t hash, const char *key, size_t n)
{
    size_t mask = index->n_slots - 1;
    size_t at = (size_t)hash & mask;

    while (index->slots[at]) {
        const struct entry *e = &index->entries[index->slots[at] - 1];

        if (e->hash == hash && e->key_len == n && memcmp(e->key, key, n) == 0)
            break;
        at = (at + 1) & mask;
    }
    return at;
}

static enum sbx_status grow_slots(struct sbx_fs_index *index, struct sbx_error *err)
{
    size_t n_slots = index->n_slots ? 2 * index->n_slots : FIRST_SLOTS;
    size_t cap = 0;
    void *slots = NULL;
    enum sbx_status st = sbx_array_grow(&slots, &cap, n_slots, 4 * (size_t)SBX_MAX_INDEX_NAMES,
                                        sizeof(uint32_t), err);

    if (st)
        return st;
    memset(slots, 0, n_slots * sizeof(uint32_t));
    free(index->slots);
    index->slots = slots;
    index->n_slots = n_slots;
    for (size_t i = 0; i < index->n; i++) {
        const struct entry *e = &index->entries[i];

        index->slots[find(index, e->hash, e->key, e->key_len)] = (uint32_t)i + 1;
    }
    return SBX_OK;
}

static enum sbx_status add_key(struct sbx_fs_index *index, uint64_t hash, const char *name,
                               size_t n, struct sbx_error *err)
{
    struct entry e = {.hash = hash, .key_len = (uint32_t)index->key.len};
    void *entries = index->entries;
    enum sbx_status st;

    if (2 * (index->n + 1) > index->n_slots) {
        st = grow_slots(index, err);
        if (st)
            return st;
    }
    st = sbx_array_grow(&entries, &index->cap, index->n + 1, SBX_MAX_INDEX_NAMES,
                        sizeof(struct entry), err);
    index->entries = entries;
    if (st)
        return st;
    st = sbx_arena_copy(&index->arena, name, n, &e.spelling[0], err);
    if (st)
        return st;
    if (e.key_len == n && memcmp(name, index->key.data, n) == 0)
        e.key = e.spelling[0];
    else
        st = sbx_arena_copy(&index->arena, index->key.data, e.key_len, &e.key, err);
    if (st)
        return st;
    index->entries[index->n++] = e;
    index->slots[find(index, hash, e.key, e.key_len)] = (uint32_t)index->n;
    return SBX_OK;
}

static bool is_spelled(const char *spelling, const char *name, size_t n)
{
    return strlen(spelling) == n && memcmp(spelling, name, n) == 0;
}

enum sbx_status sbx_fs_index_add(struct sbx_fs_index *index, const char *name, size_t n,
                                 struct sbx_error *err)
{
    enum sbx_status st = sbx_pre_key(name, n, &index->key, err);
    struct entry *e;
    uint64_t hash;
    size_t slot;

    if (st || index->key.len == 0) /* no accepted name has an empty key */
        return st;
    hash = sbx_hash(&index->hash_key, 0, index->key.data, index->key.len);
    slot = index->n_slots ? find(index, hash, index->key.data, index->key.len) : 0;
    if (!index->n_slots || !index->slots[slot])
        return add_key(index, hash, name, n, err);
    e = &index->entries[index->slots[slot] - 1];
    if (e->spelling[1] || is_spelled(e->spelling[0], name, n))
        return SBX_OK;
    return sbx_arena_copy(&index->arena, name, n, &e->spelling[1], err);
}

static enum sbx_status read_all(struct sbx_fs_index *index, int dirfd, struct sbx_error *err)
{
    SBX_DIR_AUTO DIR *dir = NULL;
    const char *name = "";
    enum sbx_status st = sbx_fs_dir_open(dirfd, &dir, err);

    while (!st && (st = sbx_fs_dir_next(dir, &name, err)) == SBX_OK && name) {
        size_t n = strlen(name);

        if (strncmp(name, SBX_PRE_OURS, strlen(SBX_PRE_OURS)) == 0 || !sbx_utf8_valid(name, n))
            continue;
        st = sbx_fs_index_add(index, name, n, err);
        /* A limit of ours, but what is too large is a directory of the host. */
        if (st == SBX_E_LIMIT)
            return sbx_err_host(err, EOVERFLOW, "readdir", "directory with too many names");
    }
    return st;
}

enum sbx_status sbx_fs_index_new(int dirfd, struct sbx_fs_index **ret, struct sbx_error *err)
{
    struct sbx_fs_index *index = calloc(1, sizeof(*index));
    enum sbx_status st;

    if (!index)
        return sbx_err_nomem(err);
    index->arena = SBX_ARENA_INIT(SBX_MAX_INDEX);
    index->key = SBX_BUF_INIT(SBX_MAX_INDEX);
    sbx_hash_key_new(&index->hash_key);
    st = read_all(index, dirfd, err);
    if (st) {
        sbx_fs_index_free(index);
        return st;
    }
    /* The end of the reading: were it the begin, one that takes longer than an index may be old
     * would be repeated for every file. */
    index->read_at = sbx_clock_now();
    *ret = index;
    return SBX_OK;
}

enum sbx_status sbx_fs_index_other(struct sbx_fs_index *index, const char *name, size_t n,
                                   const char **ret_other, struct sbx_error *err)
{
    enum sbx_status st = sbx_pre_key(name, n, &index->key, err);
    const struct entry *e;
    size_t slot;

    if (st)
        return st;
    *ret_other = NULL;
    if (!index->n_slots)
        return SBX_OK;
    slot = find(index, sbx_hash(&index->hash_key, 0, index->key.data, index->key.len),
                index->key.data, index->key.len);
    if (!index->slots[slot])
        return SBX_OK;
    e = &index->entries[index->slots[slot] - 1];
    if (!is_spelled(e->spelling[0], name, n))
        *ret_other = e->spelling[0];
    else
        *ret_other = e->spelling[1];
    return SBX_OK;
}

uint64_t sbx_fs_index_read_at(const struct sbx_fs_index *index)
{
    return index->read_at;
}
