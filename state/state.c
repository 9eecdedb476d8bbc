#include "state/state.h"

#include "base/fd.h"
#include "fsutil/file.h"
#include "fsutil/lock.h"

#define LOCK_FILE "lock"

enum sbx_status sbx_state_open(struct sbx_state *state, int rootfd, uint64_t wait_until_ns,
                               int cancel_fd, struct sbx_error *err)
{
    SBX_FD_AUTO int dirfd = -1;
    SBX_FD_AUTO int lockfd = -1;
    bool no_lock = false;
    enum sbx_status st = sbx_fs_own_dir(rootfd, SBX_STATE_DIR, true, &dirfd, err);

    if (st)
        return sbx_err_wrap(err, st, "state directory");
    /* Never written to, so further links of it (cp -al of a destination) do no harm. */
    st = sbx_fs_own_file(dirfd, LOCK_FILE, 0600, &lockfd, err);
    if (st)
        return sbx_err_wrap(err, st, "in '" SBX_STATE_DIR "'");
    st = sbx_fs_lock(lockfd, wait_until_ns, cancel_fd, &no_lock, err);
    if (st)
        return st;
    state->dirfd = sbx_fd_take(&dirfd);
    state->lockfd = sbx_fd_take(&lockfd);
    state->no_lock = no_lock;
    return SBX_OK;
}

enum sbx_status sbx_state_peek(struct sbx_state *state, int rootfd, struct sbx_error *err)
{
    int dirfd = -1;
    enum sbx_status st = sbx_fs_own_dir(rootfd, SBX_STATE_DIR, false, &dirfd, err);

    if (st)
        return sbx_err_wrap(err, st, "state directory");
    state->dirfd = dirfd;
    state->lockfd = -1;
    state->no_lock = false;
    return SBX_OK;
}

void sbx_state_close(struct sbx_state *state)
{
    sbx_fd_close(&state->dirfd);
    sbx_fd_close(&state->lockfd);
}
