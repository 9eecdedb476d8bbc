#include "sync/budget.h"

#include "base/limits.h"

static unsigned depth_of(const struct sbx_record *r)
{
    unsigned depth = 0;

    for (uint32_t i = 0; i < r->path_len; i++)
        depth += r->path[i] == '/';
    return depth;
}

/* How many leading directories two paths have in common. */
static unsigned common_depth(const struct sbx_record *a, const struct sbx_record *b)
{
    unsigned depth = 0;

    for (uint32_t i = 0; i < a->path_len && i < b->path_len && a->path[i] == b->path[i]; i++)
        depth += a->path[i] == '/';
    return depth;
}

bool sbx_admit(struct sbx_admission *a, const struct sbx_record *r, unsigned absent)
{
    unsigned depth = depth_of(r);
    unsigned there = depth - (absent < depth ? absent : depth);
    unsigned paid = a->last ? common_depth(a->last, r) : 0;
    uint64_t cost = (uint64_t)(depth - (paid > there ? paid : there)) * SBX_DIR_COST;

    if (a->files_left == 0 || r->size > a->bytes_left || cost > a->bytes_left - r->size)
        return false;
    a->files_left--;
    a->bytes_left -= r->size + cost;
    a->last = r;
    return true;
}
