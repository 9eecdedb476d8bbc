/* A second process exchanges an entry of the destination with a link that leads out of it, as fast
 * as it can, while files are made, published and swept. Nothing may happen outside. */
#include <signal.h>

#include "base/clock.h"
#include "fsutil/sweep.h"
#include "fsutil/tmp.h"
#include "fsutil/walk.h"
#include "tests/support/world.h"

#define TOKEN "00112233445566778899aabb"
#define BAIT ".sbx-sync." TOKEN ".7"
#define LENGTH_NS (1500ull * SBX_NS_PER_MS)

static const struct swap_case {
    const char *why;
    const char *build;
    const char *one, *other; /* what is exchanged */
} swap_cases[] = {
    {"the directory and a link to one outside", "d:d l:link=../outside", "d", "link"},
    {"a directory above and a link to one outside", "d:u d:u/d l:link=../outside", "u", "link"},
    {"the directory and a link to a sibling", "d:d d:e l:link=e", "d", "link"},
};

struct tally {
    unsigned published, refused, moved, failed;
};

static pid_t start_swapping(struct world *w, const struct swap_case *c)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    for (unsigned i = 0;; i++) {
        (void)renameat2(w->rootfd, c->one, w->rootfd, c->other, RENAME_EXCHANGE);
        if (i % 16 >= 8) /* bursts, and time enough for a whole file in between */
            usleep(i % 8 * 50);
    }
}

/* One file, from the temporary to its name, as a batch does it. Returns false if the directory
 * could not be entered or was another one by then. */
static void publish_one(struct sbx_fs_walk *walk, const char *path, uint64_t serial,
                        struct tally *tally)
{
    const struct sbx_fs_finish how = {0};
    struct sbx_fs_tmp t = SBX_FS_TMP_INIT;
    struct sbx_fs_place place, again;
    struct sbx_fs_target target;
    enum sbx_fs_published published;
    struct stat facts;
    char name[32];
    bool no;
    int dirfd;

    sbx_fs_walk_again(walk);
    if (sbx_fs_walk_to(walk, path, strlen(path), SBX_FS_MAKE, NULL, NULL, &place, NULL) ||
        place.reason) {
        tally->refused++;
        return;
    }
    dirfd = fcntl(place.dirfd, F_DUPFD_CLOEXEC, 3);
    assert_true(dirfd >= 0);
    assert_int_equal(sbx_fs_tmp_open(&t, dirfd, TOKEN, serial, NULL), SBX_OK);
    assert_int_equal(sbx_fs_tmp_write(&t, "new", 3, NULL), SBX_OK);
    assert_int_equal(sbx_fs_tmp_finish(&t, &how, &no, &no, NULL), SBX_OK);
    (void)snprintf(name, sizeof(name), "file-%u", (unsigned)serial % 8);
    sbx_fs_walk_again(walk);
    if (sbx_fs_walk_to(walk, path, strlen(path), SBX_FS_LOOK_ALIAS, NULL, NULL, &again, NULL) ||
        again.dirfd < 0 || again.dev != place.dev || again.ino != place.ino)
        tally->moved++;
    else if (sbx_fs_walk_look(walk, name, &target, NULL) || target.reason)
        tally->failed++;
    else if (sbx_fs_publish(again.dirfd, t.name, name, target.exists, &published, &facts, NULL) ||
             published != SBX_FS_PUBLISHED)
        tally->failed++;
    else
        tally->published++;
    assert_int_equal(sbx_fs_remove(dirfd, t.name, NULL), SBX_OK);
    close(dirfd);
}

static void sweep_one(struct sbx_fs_walk *walk, const char *path)
{
    struct sbx_fs_place place;
    size_t removed = 0, failed = 0;

    sbx_fs_walk_again(walk);
    if (!sbx_fs_walk_to(walk, path, strlen(path), SBX_FS_LOOK, NULL, NULL, &place, NULL) &&
        place.dirfd >= 0)
        assert_int_equal(sbx_fs_sweep(place.dirfd, TOKEN, &removed, &failed, NULL), SBX_OK);
    assert_int_equal(removed, 0);
}

static void nothing_happens_outside(void **state)
{
    struct world *w = *state;
    const struct swap_case *c = w->row;
    const char *path = c->one[0] == 'u' ? "u/d" : "d";
    struct sbx_fs_walk *walk = NULL;
    struct tally tally = {0};
    uint64_t end = sbx_clock_now() + LENGTH_NS;
    int outside = openat(w->basefd, "outside", O_RDONLY | O_DIRECTORY);
    pid_t swapper;

    world_build(w, c->build);
    /* What a sweep that was led astray would remove, there and in the sibling. */
    world_write(outside, BAIT, "bait", 4);
    if (world_exists(w, "e"))
        world_file(w, "e/" BAIT, "bait");
    assert_int_equal(sbx_fs_walk_new(w->rootfd, &walk, NULL), SBX_OK);
    swapper = start_swapping(w, c);
    for (uint64_t serial = 100; sbx_clock_now() < end; serial++) {
        publish_one(walk, path, serial, &tally);
        sweep_one(walk, path);
    }
    kill(swapper, SIGKILL);
    assert_int_equal(waitpid(swapper, NULL, 0), swapper);
    sbx_fs_walk_free(walk);
    print_message("published %u, refused %u, moved %u, failed %u\n", tally.published, tally.refused,
                  tally.moved, tally.failed);
    assert_int_equal(unlinkat(outside, BAIT, 0), 0);
    assert_int_equal(world_count(outside, ".", ""), 1);
    close(outside);
    if (world_exists(w, "e")) {
        assert_int_equal(world_count(w->rootfd, "e", ""), 1);
        assert_int_equal(unlinkat(w->rootfd, "e/" BAIT, 0), 0);
    }
    /* Both sides of the race were seen, or the test proves nothing. */
    assert_true(tally.published > 0 && tally.refused + tally.moved > 0);
}

int main(void)
{
    struct CMUnitTest tests[N_ELEMENTS(swap_cases)];

    (void)world_rows(tests, 0, ROWS(swap_cases), nothing_happens_outside);
    return cmocka_run_group_tests_name("exchanged meanwhile", tests, NULL, NULL);
}
