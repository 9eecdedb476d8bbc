/* Sorted records of a hostile listing come in; out comes one verdict for each. Nothing is read,
 * asked or changed. The verdict of a record is a byte: what is kept grows with the listing. */
#include "preflight/preflight.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/limits.h"
#include "preflight/alias.h"
#include "preflight/exclude.h"
#include "preflight/path.h"

_Static_assert(SBX_REASONS <= SBX_PRE_POSIX_TAKES, "a reason and a bit fit a byte");

struct sbx_preflight {
    const struct sbx_record *records; /* borrowed */
    size_t n;
    unsigned char *verdicts; /* owned */
    size_t cap_verdicts;
    struct sbx_pre_alias alias;
    uint64_t posix_takes;
};

static bool excluded(const struct sbx_record *r, const struct sbx_pre_options *options)
{
    for (size_t i = 0; i < options->n_exclude; i++) {
        if (sbx_pre_exclude(options->exclude[i], r->path, r->path_len))
            return true;
    }
    return false;
}

/* The order is that of the rules: the path's own, excluded, its facts. What is left may still be an
 * alias. */
static unsigned char verdict_of(const struct sbx_record *r, const struct sbx_pre_options *options)
{
    struct sbx_pre_path_reasons rules = sbx_pre_path_reasons(r->path, r->path_len);
    enum sbx_reason rule = options->names == SBX_NAMES_POSIX ? rules.posix : rules.portable;
    bool facts = !(r->flags & (SBX_RECORD_BAD_TIME | SBX_RECORD_CONFLICT));

    if (rule != SBX_REASON_NONE) {
        bool takes = rules.posix == SBX_REASON_NONE && facts && !excluded(r, options);

        return (unsigned char)(rule | (takes ? SBX_PRE_POSIX_TAKES : 0));
    }
    if (excluded(r, options))
        return SBX_EXCLUDE_PATTERN;
    if (r->flags & SBX_RECORD_BAD_TIME)
        return SBX_REFUSE_BAD_TIME;
    return r->flags & SBX_RECORD_CONFLICT ? SBX_REFUSE_ALIAS : SBX_REASON_NONE;
}

static enum sbx_status judge(struct sbx_preflight *p, const struct sbx_pre_options *options,
                             struct sbx_error *err)
{
    enum sbx_status st;

    st = sbx_array_grow((void **)&p->verdicts, &p->cap_verdicts, p->n, p->n, 1, err);
    if (st)
        return st;
    for (size_t i = 0; i < p->n; i++)
        p->verdicts[i] = verdict_of(&p->records[i], options);
    st =
        sbx_pre_alias_find(p->records, p->n, options->max_directories, p->verdicts, &p->alias, err);
    if (st)
        return st;
    for (size_t i = 0; i < p->n; i++) {
        p->posix_takes += p->verdicts[i] & SBX_PRE_POSIX_TAKES ? 1 : 0;
        p->verdicts[i] &= (unsigned char)~SBX_PRE_POSIX_TAKES;
    }
    return SBX_OK;
}

enum sbx_status sbx_preflight_new(const struct sbx_record *records, size_t n,
                                  const struct sbx_pre_options *options, struct sbx_preflight **ret,
                                  struct sbx_error *err)
{
    struct sbx_preflight *p = calloc(1, sizeof(*p));
    enum sbx_status st;

    if (!p)
        return sbx_err_nomem(err);
    p->records = records;
    p->n = n;
    st = judge(p, options, err);
    if (st) {
        sbx_preflight_free(p);
        return st;
    }
    *ret = p;
    return SBX_OK;
}

void sbx_preflight_free(struct sbx_preflight *p)
{
    if (!p)
        return;
    free(p->verdicts);
    sbx_pre_alias_done(&p->alias);
    free(p);
}

enum sbx_reason sbx_preflight_reason(const struct sbx_preflight *p, size_t i)
{
    return (enum sbx_reason)p->verdicts[i];
}

size_t sbx_preflight_with(const struct sbx_preflight *p, size_t i, struct sbx_pre_with *ret)
{
    struct sbx_pre_spelling others[SBX_MAX_WITH];
    size_t n = sbx_pre_alias_others(&p->alias, i, SBX_MAX_WITH, others);

    for (size_t k = 0; k < n; k++) {
        const struct sbx_record *r = &p->records[others[k].record];

        ret[k] = (struct sbx_pre_with){r->path, others[k].len, others[k].len < r->path_len};
    }
    return n;
}

uint64_t sbx_preflight_posix_would_take(const struct sbx_preflight *p)
{
    return p->posix_takes;
}
