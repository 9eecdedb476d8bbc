/* What the tests of the manifest share. */
#ifndef TESTS_UNIT_STATE_MANIFEST_WORLD_H
#define TESTS_UNIT_STATE_MANIFEST_WORLD_H

#include "state/manifest.h"
#include "tests/support/world.h"

#define STATE ".sbx-sync"
#define FILE_NAME STATE "/manifest.jsonl"
#define TOKEN "00112233445566778899aabb"

static inline int open_state(struct world *w)
{
    int fd;

    if (!world_exists(w, STATE))
        world_mkdir(w, STATE);
    fd = openat(w->rootfd, STATE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static inline struct sbx_manifest_writer *begin(int statedir, const char *identity,
                                                enum sbx_names names)
{
    const struct sbx_manifest_header header = {.identity = identity, .names = names};
    struct sbx_manifest_writer *writer = NULL;
    struct sbx_error err = {0};

    assert_int_equal(sbx_manifest_writer_new(statedir, TOKEN, 1, &header, &writer, &err), SBX_OK);
    return writer;
}

static inline struct sbx_manifest_reader *open_good(int statedir)
{
    struct sbx_manifest_reader *reader = NULL;
    enum sbx_manifest_state got;
    struct sbx_error why = {0};

    assert_int_equal(sbx_manifest_open(statedir, &reader, &got, &why, NULL), SBX_OK);
    if (got != SBX_MANIFEST_OK)
        fprintf(stderr, "%s\n", why.msg);
    assert_int_equal(got, SBX_MANIFEST_OK);
    return reader;
}

#endif
